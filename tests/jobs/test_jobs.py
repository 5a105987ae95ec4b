"""A job has the same result in a worker process as in a thread."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.jobs.conftest import CHUNKS, Place
from zarrfs.array.block import Block, Run, expanded, ranges
from zarrfs.errors import ChunkError
from zarrfs.jobs import read_block
from zarrfs.jobs.answers import BadAnswer
from zarrfs.jobs.read_block import ReadBlock
from zarrfs.store.base import ANY
from zarrfs.views.elements.window import Window, boxes


def block_of(place: Place, start: int, stop: int, *, shared: bool = True):
    """One of the boxes that make up these elements, with memory for it."""
    window = Window.whole(place.array.layout.read)
    box = max(boxes(window.shape, start, stop), key=lambda box: np.prod(box.shape))
    size = 2 * int(np.prod(box.shape))
    memory = place.memory.take(size) if shared else np.empty(size, np.uint8)
    target = memory.view("<i2").reshape(box.shape)
    target[...] = -1
    where = tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))
    return where, Block(tuple(window.runs(box)), target, target.dtype)


@pytest.mark.parametrize(("start", "stop"), [(0, 340), (17, 100), (40, 47)])
def test_blocks_are_read(place, start, stop):
    place.fill()
    where, block = block_of(place, start, stop)
    _, other = block_of(place, start, stop, shared=False)
    job = ReadBlock(place.array, block)
    read = place.through(job)
    assert np.array_equal(block.target, place.values[where])
    assert read == ReadBlock(place.array, other).perform()
    assert np.array_equal(other.target, place.values[where])
    assert place.through(ReadBlock(place.array, block, seen=False)).seen == []


def test_memory_of_one_process_is_for_its_threads(place):
    _, block = block_of(place, 0, 340, shared=False)
    assert ReadBlock(place.array, block).pack(place.memory) is None


def test_a_chunk_that_cannot_be_decoded_is_told(place):
    place.fill()
    bad = max(key for key in place.store.objects if key.startswith("c/"))
    place.store.put(bad, [b"?"], expected=ANY)
    _, block = block_of(place, 0, 340)
    job = ReadBlock(place.array, block)
    read, here = place.through(job), job.perform()
    assert isinstance(read.error, ChunkError)
    assert (read.error.key, read.error.reason) == (here.error.key, here.error.reason)
    assert (read.chunks, read.error.key) == (here.chunks, bad)


def test_what_is_known_of_shards_is_not_believed(place):
    place.fill()
    where, block = block_of(place, 0, 340)
    place.through(ReadBlock(place.array, block))
    # Shards or chunks change places.
    last, first = sorted(place.store.objects)[-2:-4:-1]
    one, other = place.store.objects[first], place.store.objects[last]
    place.store.put(first, [other], expected=ANY)
    place.store.put(last, [one], expected=ANY)
    place.array.forget_others()
    place.through(ReadBlock(place.array, block))
    now = block.target.copy()
    ReadBlock(place.array, block).perform()
    assert np.array_equal(now, block.target)
    assert not np.array_equal(now, place.values[where])


@pytest.mark.parametrize("gap", [0, 1])
def test_runs_are_told_in_short(gap):
    runs = [Run(3, slice(2, 5), slice(1, 4))]
    runs += [Run(4 + i, slice(0, 5), slice(4 + i * (5 + gap), 9 + i * (5 + gap))) for i in range(9)]
    short = ranges(runs)
    assert len(short) == (2 if gap == 0 else 10)
    assert expanded(short) == runs
    assert ranges([]) == ()
    assert expanded(()) == []


def test_workers_suit_arrays_of_small_chunks(place, monkeypatch):
    assert ReadBlock.gains(place.array)
    monkeypatch.setattr(read_block, "_LARGE_CHUNK", 1)
    assert not ReadBlock.gains(place.array)


def test_jobs_are_small(place):
    """One array of int16 with a million chunks of 16 bytes each: ranges, not chunks."""
    runs = tuple(
        [Run(i, slice(0, n), slice(i * n, i * n + n)) for i in range(1000)] for n in CHUNKS
    )
    target = place.memory.take(0).view("<i2")
    target = np.lib.stride_tricks.as_strided(target, (3000, 4000), (0, 0))
    packed = ReadBlock(place.array, Block(runs, target, target.dtype)).pack(place.memory)
    assert len(pickle.dumps(packed)) < 1000


# --- answers of workers that are none -------------------------------------------------


def damaged(answer):
    """The same with one part replaced by something else, in many ways."""
    others = [None, -2, True, 1 << 70, 1.5, float("nan"), "x", [], [[]], {}, ["x"] * 3, [None] * 4]
    yield from others
    if isinstance(answer, list):
        yield answer[:-1]
        yield [*answer, 0]
        for i, part in enumerate(answer):
            for other in damaged(part):
                yield [*answer[:i], other, *answer[i + 1 :]]


def test_an_answer_that_is_none_is_refused(place):
    """Or it is one: then its parts have the types that a result has."""
    place.fill()
    job = ReadBlock(place.array, block_of(place, 0, 60)[1])
    answer = place.perform(job.pack(place.memory))
    job.accept(copy.deepcopy(answer))
    refused = 0
    for other in damaged(answer):
        try:
            result = job.accept(other)
        except BadAnswer:
            refused += 1
            continue
        assert 0 <= result.chunks <= job.block.count
        assert result.error is not None or result.chunks == job.block.count
        for stored, generation in result.seen:
            assert all(type(i) is int and i >= 0 for i in stored)
            assert generation is None or isinstance(generation, tuple)
    assert refused > 20
