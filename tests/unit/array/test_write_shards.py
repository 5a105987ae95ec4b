"""Shards put together anew: what has changed is encoded, the rest is copied as it is."""

from itertools import product

import numpy as np
import pytest

from tests.fs.arrays import open_array
from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import MISSING, index_bytes, shard
from zarrfs.array.shards import shard_writer
from zarrfs.array.shards.parts import MemoryPart, StoredPart
from zarrfs.array.shards.shard_parts import ShardParts
from zarrfs.array.shards.shard_writer import InnerChanges, ShardWriter
from zarrfs.errors import DecodeError
from zarrfs.store.base import ObjectInfo

BIG = {"name": "bytes", "configuration": {"endian": "big"}}
SHAPE = (8, 12)
INNER = (2, 3)


def layout(*codecs, shape=SHAPE):
    document = array_document(shape, shape, codecs=list(codecs))
    return open_array(MemoryStore({"zarr.json": document})).layout


def rewritten(writer, old, shape, changes):
    """The parts of a shard; ``changes`` by index, None: to be removed."""
    part = None if old is None else MemoryPart(memoryview(old))
    inner = InnerChanges.none(writer.counts(shape))
    items = list(changes.items())
    for batch in (items[::2], items[1::2]):
        inner.replace([index for index, _ in batch], [data for _, data in batch])
    return writer.rewrite(part, shape, inner)


def random_chunk(seed, shape=INNER):
    return np.random.default_rng(seed).integers(-1000, 1000, shape, "<i2")


def decoded(codecs, data, shape=SHAPE):
    """The whole shard, as the reader of shards sees it."""
    store = MemoryStore({"zarr.json": array_document(shape, shape, codecs=list(codecs))})
    store.put("c" + "/0" * len(shape), data)
    array = open_array(store)
    result = np.empty(shape, "<i2")
    for found in array.read_chunks(list(product(*map(range, array.layout.read.counts)))):
        assert found.error is None
        origin = array.layout.read.origin(found.index)
        where = tuple(slice(o, o + n) for o, n in zip(origin, found.chunk.shape, strict=True))
        result[where] = found.chunk
    return result


KINDS = {
    "end": (sharding(INNER),),
    "start": (sharding(INNER, index_location="start"),),
    "index big and unchecked": (sharding(INNER, index_codecs=[BIG]),),
    "index transposed": (
        sharding(
            INNER,
            index_codecs=[
                {"name": "transpose", "configuration": {"order": [2, 0, 1]}}, LITTLE, CRC32C,
            ],
        ),
    ),
    "compressed inside": (sharding(INNER, codecs=[LITTLE, GZIP]),),
    "around": (sharding(INNER), ZSTD, CRC32C),
    "nested": (sharding((4, 6), codecs=[sharding(INNER, codecs=[LITTLE, GZIP])]),),
    "nested start": (
        sharding(
            (4, 6), index_location="start", codecs=[sharding(INNER, index_location="start")]
        ),
    ),
    "nested and around each": (
        sharding((4, 6), codecs=[sharding(INNER), GZIP, CRC32C]), ZSTD,
    ),
    "transposed before": (
        {"name": "transpose", "configuration": {"order": [1, 0]}}, sharding(INNER[::-1]),
    ),
    "transposed between": (
        sharding(
            (4, 6),
            codecs=[
                {"name": "transpose", "configuration": {"order": [1, 0]}},
                sharding(INNER[::-1], codecs=[LITTLE, CRC32C]),
            ],
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("codecs", KINDS.values(), ids=KINDS)
def test_any_changes_to_any_shard(codecs, monkeypatch):
    writer = ShardWriter(layout(*codecs))
    codec = layout(*codecs).chunk_codec(INNER)
    random = np.random.default_rng(1)
    expected = np.full(SHAPE, 7, "<i2")
    places = list(product(range(4), range(4)))
    old = None
    for round_ in range(12):
        # Small inner chunks share a buffer, large ones do not.
        monkeypatch.setattr(shard_writer, "_JOINED", (0, 1 << 15)[round_ % 2])
        changes = {}
        for place in random.permutation(places)[: random.integers(1, 9)]:
            index = tuple(place.tolist())
            where = tuple(slice(i * n, i * n + n) for i, n in zip(index, INNER, strict=True))
            if random.random() < 0.4:
                changes[index] = None
                expected[where] = 7
            else:
                chunk = random_chunk(round_ * 100 + index[0] * 10 + index[1])
                changes[index] = codec.encode(chunk)
                expected[where] = chunk
        parts = rewritten(writer, old, SHAPE, changes)
        old = None if parts is None else b"".join(parts)
        if old is None:
            assert (expected == 7).all()
        else:
            assert (decoded(codecs, old) == expected).all()
    assert rewritten(writer, old, SHAPE, dict.fromkeys(places)) is None


@pytest.mark.parametrize("location", ["start", "end"])
def test_untouched_inner_chunks_are_copied_byte_for_byte(location):
    """These would not even decode."""
    codecs = (sharding((1,), codecs=[LITTLE, GZIP], index_location=location),)
    old = shard([b"anything", None, b"else", b"x"], location)
    encoded = layout(*codecs, shape=(4,)).chunk_codec((1,)).encode(np.array([5], "<i2"))
    parts = rewritten(ShardWriter(layout(*codecs, shape=(4,))), old, (4,), {(1,): encoded})
    assert parts is not None
    new = b"".join(parts)
    assert new == shard([b"anything", bytes(encoded), b"else", b"x"], location)


def test_what_does_not_change_is_not_copied_in_memory():
    codecs = (sharding((1,)),)
    old = shard([b"aa", b"bb", b"cc", None])
    parts = rewritten(ShardWriter(layout(*codecs, shape=(4,))), old, (4,), {(3,): b"\1\0"})
    assert parts is not None
    kept = [part for part in parts if isinstance(part, memoryview) and part.obj is old]
    assert b"".join(kept) == b"aabbcc"


def test_overlapping_and_gapped_inner_chunks_are_separate_afterwards():
    codecs = (sharding((1,)),)
    body = b"..aabb.."
    old = body + index_bytes([(2, 2), (2, 2), (MISSING, MISSING), (4, 2)])
    parts = rewritten(ShardWriter(layout(*codecs, shape=(4,))), old, (4,), {(2,): b"cc"})
    assert parts is not None
    assert b"".join(parts) == shard([b"aa", b"aa", b"cc", b"bb"])


@pytest.mark.parametrize(
    "old",
    [
        b"",
        b"short",
        shard([b"aa", b"bb"])[:-1] + b"?",
        shard([b"aa", b"bb"], entries={1: (2, 1000)}),
        shard([b"aa", b"bb"], entries={1: (0, 0)}),
        shard([b"aa", b"bb"], entries={1: (MISSING, 2)}),
    ],
)
def test_a_damaged_shard_is_not_rewritten(old):
    writer = ShardWriter(layout(sharding((1,)), shape=(2,)))
    with pytest.raises(DecodeError):
        rewritten(writer, old, (2,), {(0,): b"\1\0"})


def test_a_damaged_entry_can_be_replaced():
    writer = ShardWriter(layout(sharding((1,)), shape=(2,)))
    old = shard([b"aa", b"bb"], entries={1: (2, 1000)})
    parts = rewritten(writer, old, (2,), {(1,): b"cc"})
    assert parts is not None
    assert b"".join(parts) == shard([b"aa", b"cc"])


def test_nothing_of_nothing_is_nothing():
    writer = ShardWriter(layout(sharding((1,)), shape=(2,)))
    assert rewritten(writer, None, (2,), {(0,): None}) is None


@pytest.mark.parametrize("codecs", [(sharding(()),), (sharding((), codecs=[sharding(())]),)])
def test_a_shard_of_no_axes_has_one_inner_chunk(codecs):
    writer = ShardWriter(layout(*codecs, shape=()))
    old = None
    for value in (5, 6):
        parts = rewritten(writer, old, (), {(): np.array(value, "<i2").tobytes()})
        assert parts is not None
        old = b"".join(parts)
        assert decoded(codecs, old, ()) == value
    assert rewritten(writer, old, (), {(): None}) is None


def test_an_inner_shard_that_is_empty_now_is_missing():
    codecs = KINDS["nested"]
    writer = ShardWriter(layout(*codecs))
    whole = rewritten(
        writer, None, SHAPE, {i: random_chunk(1) for i in product(range(4), range(4))}
    )
    assert whole is not None
    less = rewritten(writer, b"".join(whole), SHAPE, dict.fromkeys(product(range(2), range(2))))
    assert less is not None
    index = np.frombuffer(b"".join(less)[-68:-4], "<u8").reshape(2, 2, 2)
    assert index[0, 0].tolist() == [MISSING, MISSING]
    assert MISSING not in index[0, 1]


def test_no_byte_is_asked_of_an_object_that_has_none():
    """Some services refuse ranges without bytes."""
    store = MemoryStore({})
    empty = StoredPart(store, "c/0", ObjectInfo(0, None, ("1",)), 0, 0)
    assert list(ShardParts("c/0", [empty, b"x"])) == [b"x"]
