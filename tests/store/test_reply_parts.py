"""In which parts the bodies of replies arrive."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace

import pytest

from zarrfs.store.base import ByteRange, ObjectInfo
from zarrfs.store.remote.obstore_objects import ObstoreObjects

pytest.importorskip("obstore")
pytestmark = pytest.mark.timeout(30)

MIB = 1 << 20
SMALLEST = 10 << 10


class Service:
    """Stands in for ``obstore``; notes how large the parts of each body are to be."""

    def __init__(self):
        self.asked = []
        self.given = 0

    async def get_async(self, _store, _key, *, options):
        start, stop = options["range"]
        meta = {
            "size": 64 * MIB,
            "last_modified": datetime.now(UTC),
            "e_tag": '"1"',
            "version": None,
        }
        return SimpleNamespace(
            meta=meta, range=(start, stop), attributes={}, stream=self._body_of(stop - start)
        )

    def _body_of(self, length):
        async def parts(size):
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
        None, lambda size, time, etag, version: ObjectInfo(size, time, etag), smallest_part=SMALLEST
    )
    made._obstore = service
    return made


async def received(objects, length, most=None):
    """How many bytes came; of the body the first ``most`` parts are read."""
    reply = await objects.get("key", ByteRange(0, length))
    count = parts = 0
    async for part in reply.body:
        count += len(part)
        parts += 1
        if parts == most:
            break
    await reply.body.aclose()
    return count


def test_a_fast_link_has_large_parts(objects, service):
    async def run():
        for _ in range(8):
            assert await received(objects, 8 * MIB) == 8 * MIB

    asyncio.run(run())
    assert service.asked[0] == SMALLEST
    assert all(later <= 4 * sooner for sooner, later in pairwise(service.asked))
    assert service.asked[-1] == 8 * MIB


def test_small_bodies_say_nothing_of_the_link(objects, service):
    async def run():
        for _ in range(8):
            assert await received(objects, 1000) == 1000

    asyncio.run(run())
    assert set(service.asked) == {SMALLEST}


def test_after_a_body_that_was_given_up_parts_are_small_again(objects, service):
    """Otherwise no reply would bring a part in time on a link that has become slow."""

    async def run():
        for _ in range(8):
            await received(objects, 8 * MIB)
        service.given = 0
        await received(objects, 32 * MIB, most=1)
        assert service.given == 1
        await received(objects, 8 * MIB)

    asyncio.run(run())
    assert service.asked[-2:] == [8 * MIB, SMALLEST]


def test_no_part_is_awaited_beyond_the_last(objects, service):
    async def run():
        reply = await objects.get("key", ByteRange(0, 5 * MIB))
        return [len(part) async for part in reply.body]

    objects._part = 8 * MIB
    assert asyncio.run(run()) == [5 * MIB]
    assert service.given == 1
