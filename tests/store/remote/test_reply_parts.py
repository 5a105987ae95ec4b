"""In which parts the bodies of replies arrive."""

import itertools
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace

import pytest

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.remote import obstore_objects
from zarrfs.store.remote.obstore_objects import ObstoreObjects
from zarrfs.store.remote.requests import RequestConfig

pytest.importorskip("obstore")
pytestmark = pytest.mark.timeout(30)

MIB = 1 << 20
SMALLEST = RequestConfig().smallest_part


class Service:
    """Stands in for ``obstore``; notes how large the parts of each body are to be."""

    def __init__(self):
        self.asked = []
        self.given = 0

    def get(self, _store, _key, *, options):
        start, stop = options["range"]
        meta = {
            "size": 64 * MIB,
            "last_modified": datetime.now(UTC),
            "e_tag": '"1"',
            "version": None,
        }
        return SimpleNamespace(
            meta=meta,
            range=(start, stop),
            attributes={},
            stream=self._body_of(stop - start),
        )

    def _body_of(self, length):
        def parts(size):
            left = length
            while left:
                data = bytes(min(size, left))
                left -= len(data)
                self.given += 1
                yield data

        def stream(min_chunk_size):
            self.asked.append(min_chunk_size)
            return parts(min_chunk_size)

        return stream


@pytest.fixture
def service():
    return Service()


@pytest.fixture
def objects(service):
    made = ObstoreObjects(
        lambda **_: None,
        lambda size, time, etag, version: ObjectInfo(size, time, etag),
        RequestConfig(),
    )
    made._obstore = service
    return made


def received(objects, length, most=None):
    """How many bytes came; of the body the first ``most`` parts are read."""
    reply = objects.get("key", ByteRange(0, length))
    sizes = [len(part) for part in itertools.islice(reply.body, most)]
    if most is not None:
        reply.body.close()
    return sum(sizes)


def test_a_fast_link_has_large_parts(objects, service):
    for _ in range(8):
        assert received(objects, 8 * MIB) == 8 * MIB
    assert service.asked[0] == SMALLEST
    assert all(later <= 4 * sooner for sooner, later in pairwise(service.asked))
    assert service.asked[-1] == 8 * MIB


def test_short_bodies_make_parts_larger_but_not_smaller(objects, monkeypatch):
    step, ticks = 0.1, itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) * step)
    monkeypatch.setattr(obstore_objects, "time", clock)
    received(objects, 6000)
    larger = objects._part
    assert larger > SMALLEST
    received(objects, 500)
    assert objects._part == larger
    step = 1000
    received(objects, MIB)
    assert objects._part == SMALLEST


def test_a_short_body_takes_one_call(objects, service):
    assert received(objects, 1000) == 1000
    assert service.asked == [1000]
    assert service.given == 1


def test_after_a_body_that_was_given_up_parts_are_small_again(objects, service):
    """Otherwise no reply would bring a part in time on a link that has become slow."""

    for _ in range(8):
        received(objects, 8 * MIB)
    service.given = 0
    received(objects, 32 * MIB, most=1)
    assert service.given == 1
    received(objects, 8 * MIB)
    assert service.asked[-2:] == [8 * MIB, SMALLEST]


def test_no_part_is_awaited_beyond_the_last(objects, service):
    objects._part = 8 * MIB
    reply = objects.get("key", ByteRange(0, 5 * MIB))
    assert [len(part) for part in reply.body] == [5 * MIB]
    assert service.given == 1
