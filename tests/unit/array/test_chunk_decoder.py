"""Chunks of a block are the same, bit for bit and error for error, as one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.arrays import open_array
from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.array.block import Block
from zarrfs.array.block_reader import read_block
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import StoreError
from zarrfs.format.codec import SizeBound
from zarrfs.format.codecs import zstd
from zarrfs.format.codecs.crc32c import Crc32cCodec
from zarrfs.format.codecs.zstd import ZstdCodec
from zarrfs.views.elements.window import Window, boxes

LENGTH = 300
COUNT = 12
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": True}}


def values(number):
    return np.arange(number, number + LENGTH, dtype="<i2")


def frame(number, codec=ZSTD, checked=False):
    size = SizeBound(2 * LENGTH, exact=True)
    data = ZstdCodec(**codec["configuration"]).bind(size).encode(values(number).tobytes())
    if checked:
        data = Crc32cCodec().bind(SizeBound(len(data), exact=True)).encode(data)
    return bytes(data)


def skippable(data):
    return (0x184D2A50).to_bytes(4, "little") + len(data).to_bytes(4, "little") + data


def halves(number):
    """Two frames, which together hold a chunk."""
    data = values(number).tobytes()
    half = SizeBound(LENGTH, exact=True)
    return b"".join(ZstdCodec().bind(half).encode(part) for part in (data[:LENGTH], data[LENGTH:]))


def lying(number, more):
    """A frame that holds some bytes more than a chunk, or less, and tells that it does not."""
    data = (values(number).tobytes() + b"more")[: 2 * LENGTH + more]
    encoded = bytearray(ZstdCodec().bind(SizeBound(len(data), exact=True)).encode(data))
    assert int.from_bytes(encoded[5:7], "little") + 256 == len(data)
    encoded[5:7] = (2 * LENGTH - 256).to_bytes(2, "little")
    return bytes(encoded)


def unchecked(number):
    """A frame that begins and ends otherwise than those with a checksum."""
    return frame(number, {"configuration": {"level": 3, "checksum": False}})


DAMAGE = {
    "whole": frame,
    "without a checksum": unchecked,
    "missing": lambda _: None,
    "of two frames": halves,
    "behind what is skipped": lambda n: skippable(b"!") + frame(n),
    "cut short": lambda n: frame(n)[:-6],
    "longer": lambda n: frame(n) + b"junk",
    "twice": lambda n: frame(n) * 2,
    "of another size": lambda _: bytes(ZstdCodec().bind(SizeBound(2, exact=True)).encode(b"ab")),
    "bad checksum": lambda n: frame(n)[:-1] + bytes([frame(n)[-1] ^ 1]),
    "bad inside": lambda n: frame(n)[:20] + b"\xff" * 8 + frame(n)[28:],
    "holds more": lambda n: lying(n, 1),
    "holds less": lambda n: lying(n, -1),
    "empty": lambda _: b"",
    "no frame": lambda _: b"rubbish" * 9,
}


WHOLE = ("whole", "without a checksum", "of two frames", "behind what is skipped")


def arrays(stored, codecs):
    """The same chunks, each an object of its own and in one shard."""
    document = array_document((COUNT * LENGTH,), (LENGTH,), codecs=[LITTLE, *codecs])
    objects = {f"c/{i}": data for i, data in enumerate(stored) if data is not None}
    yield open_array(MemoryStore({"zarr.json": document, **objects}))
    within = [sharding((LENGTH,), codecs=[LITTLE, *codecs])]
    document = array_document((COUNT * LENGTH,), (COUNT * LENGTH,), codecs=within)
    yield open_array(MemoryStore({"zarr.json": document, "c/0": shard(stored)}))


def outcome(result):
    if result.chunk is None:
        return result.error.key, result.error.reason
    return result.chunk.tobytes()


FILL = np.full(LENGTH, 7, "<i2").tobytes()
INDICES = [(i,) for i in range(COUNT)]


def read_all(array):
    """What becomes of each chunk if all are asked for."""
    results = list(array.read_chunks(INDICES))
    assert [result.index for result in results] == INDICES
    return {result.index: outcome(result) for result in results}


def read_as_block(array):
    """All chunks one after the other, or the first error."""
    target = np.full(COUNT * LENGTH, -1, "<i2")
    window = Window.whole(array.layout.read)
    (box,) = boxes(window.shape, 0, COUNT * LENGTH)
    read = read_block(array, Block(tuple(window.runs(box)), target, target.dtype))
    return target.tobytes() if read.error is None else (read.error.key, read.error.reason)


def check(array):
    alone = {index: outcome(next(iter(array.read_chunks([index])))) for index in INDICES}
    assert read_all(array) == alone
    errors = [found for found in alone.values() if isinstance(found, tuple)]
    assert read_as_block(array) == (errors[0] if errors else b"".join(alone.values()))
    return alone


@given(st.lists(st.sampled_from(sorted(DAMAGE)), min_size=COUNT, max_size=COUNT))
def test_whatever_is_stored_comes_as_it_does_alone(names):
    stored = [DAMAGE[name](i) for i, name in enumerate(names)]
    for array in arrays(stored, [ZSTD]):
        found = check(array)
        for i, name in enumerate(names):
            if name in WHOLE:
                assert found[i,] == values(i).tobytes()
            elif name != "missing":
                assert isinstance(found[i,], tuple), name


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_without_libzstd_it_is_the_same(monkeypatch, name):
    stored = [DAMAGE[name](i) if i == 3 else frame(i) for i in range(COUNT)]
    with_it = [check(array) for array in arrays(stored, [ZSTD])]
    monkeypatch.setattr(zstd, "libzstd", lambda: None)
    without = [check(array) for array in arrays(stored, [ZSTD])]
    for found, other in zip(with_it, without, strict=True):
        assert found.keys() == other.keys()
        for index, chunk in found.items():
            if isinstance(chunk, bytes):
                assert chunk == other[index]
            else:
                # What libraries say of what they cannot decode is their own.
                assert isinstance(other[index], tuple)


def in_shard(stored, near=True):
    """Chunks of one shard, in a store that can be made to fail; calls of opening are forgotten."""
    document = array_document(
        (COUNT * LENGTH,), (COUNT * LENGTH,), codecs=[sharding((LENGTH,), codecs=[LITTLE, ZSTD])]
    )
    store = FaultStore(MemoryStore({"zarr.json": document} | stored), near=near)
    array = open_array(store)
    store.calls.clear()
    return array, store


def test_a_shard_that_is_missing_is_asked_for_once():
    array, store = in_shard({})
    assert read_all(array) == dict.fromkeys(INDICES, FILL)
    assert len(store.calls) == 1


def test_a_store_that_fails_is_asked_once():
    array, store = in_shard({"c/0": shard([frame(i) for i in range(COUNT)])})

    def fail(call):
        raise StoreError(call.key, "is out of order")

    store.before = fail
    assert read_all(array) == dict.fromkeys(INDICES, ("c/0", "is out of order"))
    assert len(store.calls) == 1
    store.before = lambda _: None
    assert read_all(array) == {(i,): values(i).tobytes() for i in range(COUNT)}


def test_a_shard_that_is_cut_short_is_read_once():
    array, store = in_shard({"c/0": b"?" * 10})
    found = read_all(array)
    assert set(found.values()) == {found[0,]}
    assert found == {index: outcome(next(array.read_chunks([index]))) for index in INDICES}
    assert isinstance(found[0,], tuple)
    assert len(store.calls) == 1 + COUNT


def test_a_shard_that_is_replaced_before_its_index_is_read_again(monkeypatch):
    """An index may have made room for others by the time that it is wanted."""
    monkeypatch.setattr(PartCache, "put", lambda *_: None)
    array, store = in_shard({"c/0": shard([frame(i) for i in range(COUNT)])})
    other = shard([frame(COUNT + i) for i in range(COUNT)])

    def replace(_call):
        if len(store.calls) == 2:
            store.inner.put("c/0", other)

    store.before = replace
    assert read_all(array) == {(i,): values(COUNT + i).tobytes() for i in range(COUNT)}


def test_a_store_that_returns_too_few_objects_shifts_none(monkeypatch):
    array, _ = arrays([frame(i) for i in range(COUNT)], [ZSTD])
    get_many = array.store.get_many
    monkeypatch.setattr(
        array.store, "get_many", lambda keys, limit: list(get_many(keys[:-1], limit=limit))
    )
    with pytest.raises(ValueError, match="shorter"):
        read_all(array)


def test_a_shard_that_is_wanted_whole_is_one_request_where_it_has_room():
    members = [frame(i) for i in range(COUNT)]
    array, store = in_shard({"c/0": shard(members)}, near=False)
    assert read_all(array) == {(i,): values(i).tobytes() for i in range(COUNT)}
    assert len(store.calls) == 1


def test_a_shard_that_is_larger_than_its_chunks_may_be_is_read_by_ranges():
    """A writer may leave gaps of any size."""
    members = [frame(i) for i in range(COUNT)]
    whole = shard(members)
    index = len(whole) - 16 * COUNT - 4
    gap = bytes(COUNT * ((1 << 16) + 4 * LENGTH))
    array, store = in_shard({"c/0": whole[:index] + gap + whole[index:]}, near=False)
    assert read_all(array) == {(i,): values(i).tobytes() for i in range(COUNT)}
    assert len(store.calls) == 3
