"""Blocks read chunk by chunk or several at once hold what the array holds."""

import json
import math
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.arrays import open_array
from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import MISSING, shard, with_checksum
from tests.model.arrays import chunk_at
from zarrfs.array import chunk_decoder
from zarrfs.array.block import Block
from zarrfs.array.block_reader import read_block, read_pieces
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.views.elements.window import Window, boxes

FILL = 7
BLOSC = {
    "name": "blosc",
    "configuration": {
        "cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 2, "blocksize": 0,
    },
}  # fmt: skip
REVERSED = {"name": "transpose", "configuration": {"order": "F"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
PIPELINES = {
    "zstd": [LITTLE, ZSTD],
    "zstd and a checksum": [LITTLE, ZSTD, CRC32C],
    "zstd of swapped elements": [BIG, ZSTD],
    "gzip": [LITTLE, GZIP],
    "gzip of swapped elements and a checksum": [BIG, GZIP, CRC32C],
    "a checksum": [LITTLE, CRC32C],
    "swapped elements": [BIG],
    "transposed": [REVERSED, LITTLE],
    "transposed, swapped and compressed": [REVERSED, BIG, BLOSC],
    "none": [LITTLE],
}


def values(shape):
    return (np.arange(math.prod(shape), dtype="<u2") + 1).reshape(shape)


def shard_in_order(members, order):
    """A shard whose inner chunks lie in order (1), backwards (-1), or each beside its opposite."""
    numbers = list(range(len(members)))[:: order or 1]
    if not order:
        numbers = [n for pair in zip(numbers, reversed(numbers), strict=True) for n in pair]
        numbers = list(dict.fromkeys(numbers))
    offset, entries = 0, {}
    for number in numbers:
        length = len(members[number] or b"")
        entries[number] = (offset, length) if length else (MISSING, MISSING)
        offset += length
    return shard([members[number] for number in numbers], entries=entries)


@st.composite
def stored_arrays(draw):
    """An array, what it holds, and the objects of a store; some chunks are missing."""
    rank = draw(st.integers(1, 3))
    shape = draw(st.tuples(*[st.integers(1, 14)] * rank))
    inner = draw(st.tuples(*[st.integers(1, 4)] * rank))
    many = draw(st.tuples(*[st.integers(1, 4)] * rank)) if draw(st.booleans()) else None
    codecs = PIPELINES[draw(st.sampled_from(sorted(PIPELINES)))]
    chunk = inner if many is None else tuple(n * m for n, m in zip(inner, many, strict=True))
    plain = array_document(shape, inner, codecs=codecs)
    codec = parse_node(json.loads(plain), "zarr.json").layout.chunk_codec(inner)
    whole = values(shape)
    missing = draw(st.sets(st.integers(0, 40)))
    encoded = {}
    counts = [-(-n // c) for n, c in zip(shape, inner, strict=True)]
    for number, index in enumerate(product(*map(range, counts))):
        if number in missing:
            part = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, inner, strict=True))
            whole[part] = FILL
        else:
            encoded[index] = bytes(codec.encode(chunk_at(whole, 0, index, inner)))
    if many is None:
        objects = {"c/" + "/".join(map(str, i)): data for i, data in encoded.items()}
        return MemoryStore({"zarr.json": plain, **objects}), whole
    document = array_document(shape, chunk, codecs=[sharding(inner, codecs=codecs)])
    objects = {}
    for outer in product(*(range(-(-n // c)) for n, c in zip(shape, chunk, strict=True))):
        members = [
            encoded.get(tuple(o * m + i for o, m, i in zip(outer, many, local, strict=True)))
            for local in product(*map(range, many))
        ]
        order = draw(st.sampled_from([1, -1, 0]))
        objects["c/" + "/".join(map(str, outer))] = shard_in_order(members, order)
    return MemoryStore({"zarr.json": document, **objects}), whole


def blocks_of(draw, array, room, dtype):
    """A part of the array, for each box of which there is memory between other memory."""
    window = Window.whole(array.layout.read)
    start = draw(st.integers(0, window.elements - 1))
    stop = draw(st.integers(start + 1, window.elements))
    for box in boxes(window.shape, start, stop):
        around = np.full([n + 2 * room for n in box.shape], 0xFFFF, dtype)
        target = around[tuple(slice(room, room + n) for n in box.shape)]
        inside = tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))
        block = Block(tuple(window.runs(box)), target, np.dtype("<u2"))
        most = draw(st.integers(1, 30))
        shards = block.shards(array.layout)
        yield inside, around, [job for shard in shards for job in shard.jobs(None, most)]


@given(
    data=st.data(),
    case=stored_arrays(),
    room=st.integers(0, 1),
    at_once=st.integers(1, 300),
    dtype=st.sampled_from(["<u2", ">u2"]),
)
def test_a_block_holds_what_the_array_holds(data, case, room, at_once, dtype):
    store, whole = case
    with patch.object(chunk_decoder, "_AT_ONCE", at_once):
        array = open_array(store)
    for inside, around, jobs in blocks_of(data.draw, array, room, dtype):
        expected = np.full_like(around, 0xFFFF)
        expected[tuple(slice(room, n - room) for n in around.shape)] = whole[inside]
        for job in jobs:
            around_before = around.copy()
            read = read_block(array, job)
            assert read.error is None
            stored = {array.layout.stored_index(index) for index in job.indices()}
            assert {index for index, _ in read.seen} == stored
            size = array.layout.spec(array.layout.read.regular_shape).nbytes
            assert (read.chunks, read.decoded_bytes) == (job.count, job.count * size)
            together, around[...] = around.copy(), around_before
            alone = read_pieces(array, job.pieces(), job.carrier)
            assert sorted(alone.seen) == sorted(read.seen)
            assert alone[1:] == read[1:]
            assert np.array_equal(around, together)
        assert np.array_equal(around, expected)


@given(data=st.data(), case=stored_arrays(), at_once=st.integers(1, 300), most=st.integers(1, 60))
def test_jobs_of_several_shards_hold_what_the_array_holds(data, case, at_once, most):
    """Missing shards and inner chunks, and shards that are partly wanted, among them."""
    store, whole = case
    for key in data.draw(st.sets(st.sampled_from(sorted(store.objects)))) - {"zarr.json"}:
        del store.objects[key]
        index = tuple(int(part) for part in key.split("/")[1:])
        stored = open_array(store).layout.stored.regular_shape
        whole[tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, stored, strict=True))] = FILL
    with patch.object(chunk_decoder, "_AT_ONCE", at_once):
        array = open_array(store)
    window = Window.whole(array.layout.read)
    start = data.draw(st.integers(0, window.elements - 1))
    stop = data.draw(st.integers(start + 1, window.elements))
    for box in boxes(window.shape, start, stop):
        inside = tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))
        target = np.full(box.shape, 0xFFFF, "<u2")
        block = Block(tuple(window.runs(box)), target, np.dtype("<u2"))
        for job in block.jobs(array.layout, most):
            read = read_block(array, job)
            assert read.error is None
            assert read.chunks == job.count
            seen = [index for index, _ in read.seen]
            assert sorted(seen) == sorted({array.layout.stored_index(i) for i in job.indices()})
        assert np.array_equal(target, whole[inside])


def without_index(data):
    return data[:3]


def with_a_bad_index(data):
    return data[:-1] + bytes([data[-1] ^ 1])


def with_a_bad_chunk(data):
    return bytes([data[0] ^ 0xFF]) + data[1:]


def with_a_gap(data):
    """Larger than its inner chunks can be."""
    entries = np.frombuffer(data[-4 - 16 * 3 : -4], "<u8").reshape(3, 2).copy()
    entries[:, 0] += 5000
    index = entries.tobytes()
    return bytes(5000) + data[: -4 - 16 * 3] + with_checksum(index)


@pytest.mark.parametrize("codecs", [[LITTLE, ZSTD, CRC32C], [LITTLE, CRC32C]])
@pytest.mark.parametrize("spoil", [without_index, with_a_bad_index, with_a_bad_chunk, with_a_gap])
def test_a_bad_shard_among_others(codecs, spoil):
    plain = array_document((6,), (2,), codecs=codecs)
    codec = parse_node(json.loads(plain), "zarr.json").layout.chunk_codec((2,))
    objects = {
        f"c/{n}": shard([bytes(codec.encode(values((24,))[6 * n + i :][:2])) for i in (0, 2, 4)])
        for n in range(4)
    }
    objects["c/2"] = spoil(objects["c/2"])
    document = array_document((24,), (6,), codecs=[sharding((2,), codecs=codecs)])
    array = open_array(MemoryStore({"zarr.json": document, **objects}))
    target = np.zeros(24, "<u2")
    window = Window.whole(array.layout.read)
    (box,) = boxes(window.shape, 0, 24)
    block = Block(tuple(window.runs(box)), target, target.dtype)
    read = read_block(array, block)
    if spoil is with_a_gap:
        assert read.error is None
        assert np.array_equal(target, values((24,)))
        states = {(n,): array.stored_info((n,)).generation for n in range(4)}
        assert dict(read.seen) == states
        return
    alone = read_pieces(array, block.pieces(), block.carrier).error
    assert (read.error.key, read.error.reason) == (alone.key, alone.reason)
    assert read.error.key == "c/2"


@given(data=st.data(), case=stored_arrays(), at_once=st.integers(1, 300))
def test_a_chunk_that_cannot_be_decoded_is_told(data, case, at_once):
    store, _ = case
    with patch.object(chunk_decoder, "_AT_ONCE", at_once):
        array = open_array(store)
    window = Window.whole(array.layout.read)
    (box,) = boxes(window.shape, 0, window.elements)
    block = Block(tuple(window.runs(box)), np.zeros(box.shape, "<u2"), np.dtype("<u2"))
    keys = sorted(key for key in store.objects if key != "zarr.json")
    if not keys:
        return
    bad = data.draw(st.sampled_from(keys))
    store.objects[bad] = b"?"
    for job in block.shards(array.layout):
        told = [read_block(array, job), read_pieces(array, job.pieces(), job.carrier)]
        of_bad = any(array.key(array.layout.stored_index(i)) == bad for i in job.indices())
        for read in told:
            assert (read.error is not None) == of_bad
            if of_bad:
                assert read.error.key == bad
                assert read.chunks < job.count


def frame(*elements, size_given=True):
    compressor = zstandard.ZstdCompressor(write_content_size=size_given)
    return compressor.compress(np.array(elements, "<u2").tobytes())


SKIPPED = bytes.fromhex("502a4d18") + (3).to_bytes(4, "little") + b"xyz"


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        (frame(1, 2), frame(3, 4), True),
        (frame(1) + frame(2), frame(3, 4), True),
        (SKIPPED + frame(1, 2), frame(3, 4) + SKIPPED, True),
        (frame(1, 2, size_given=False), frame(3, 4), True),
        (frame(1, 2, size_given=False), frame(3, 4, size_given=False), True),
        # Together these hold the right number of bytes, but not each of them.
        (frame(1), frame(2, 3, 4), False),
        (frame(1, 2) + frame(3), frame(4), False),
        (frame(1, 2) + frame(3, 4), b"", False),
        (frame(1, 2) + frame(3, 4)[:7], frame(3, 4)[7:], False),
        (frame(1, 2), frame(3, 4)[:-1], False),
        (frame(1, 2), b"?" * 20, False),
    ],
)
def test_each_of_several_chunks_must_hold_its_own_elements(first, second, right):
    document = array_document((4,), (2,), codecs=[LITTLE, ZSTD])
    array = open_array(MemoryStore({"zarr.json": document, "c/0": first, "c/1": second}))
    window = Window.whole(array.layout.read)
    (box,) = boxes(window.shape, 0, 4)
    target = np.zeros(4, "<u2")
    block = Block(tuple(window.runs(box)), target, target.dtype)
    read = read_block(array, block)
    alone = read_pieces(array, block.pieces(), block.carrier)
    assert (read.error is None) == right
    if right:
        assert target.tolist() == [1, 2, 3, 4]
    else:
        assert (read.error.key, read.error.reason) == (alone.error.key, alone.error.reason)
