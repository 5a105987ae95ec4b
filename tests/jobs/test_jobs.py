"""A job has the same result in a worker process as in a thread."""

import copy
import pickle

import numpy as np
import pytest

from tests.fs.write_store import refusing
from tests.jobs.conftest import CHUNKS, Place
from zarrfs.array.block import Block, Run, expanded, ranges
from zarrfs.errors import ChunkError, StoreConflict, StoreFull
from zarrfs.jobs import read_block, store_chunks
from zarrfs.jobs.executor import suited
from zarrfs.jobs.job import BadAnswer, Job
from zarrfs.jobs.read_block import ReadBlock
from zarrfs.jobs.store_chunks import NewObject, StoreChunks
from zarrfs.store.base import ANY
from zarrfs.views.elements.window import Window, boxes


def block_of(place: Place, start: int, stop: int, *, shared: bool = True):
    """One of the boxes that make up these elements, with memory for it."""
    window = Window.whole(place.array.layout.read)
    box = max(boxes(window.shape, start, stop), key=lambda box: np.prod(box.shape))
    size = 2 * int(np.prod(box.shape))
    memory = place.lend(size) if shared else np.empty(size, np.uint8)
    target = memory.view("<i2").reshape(box.shape)
    target[...] = -1
    where = tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))
    return where, Block(tuple(window.runs(box)), target, target.dtype)


def alone(place: Place, values: np.ndarray, index: tuple[int, int], expected=ANY) -> NewObject:
    """A chunk that is an object of its own."""
    return NewObject({index: place.chunk(values, index)}, expected)


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
    assert ReadBlock(place.array, block).pack(place) is None


def test_without_room_to_pass_it_a_job_is_for_threads(place):
    new = {index: alone(place, place.values, index) for index in [(0, 0), (0, 1)]}
    place.room = False
    assert StoreChunks(place.writer, new).pack(place) is None


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


@pytest.mark.parametrize("place", [False], indirect=True, ids=["chunks"])
def test_chunks_are_stored(place):
    place.fill()
    before = dict(place.store.objects)
    values = place.values[::-1] + np.int16(1)
    values[place.part((2, 2))] = 7
    indices = place.all_indices()[1:]
    conditions = {
        (1, 1): place.store.info("c/1/1").generation,
        (1, 2): None,
        (1, 3): ("another", 1),
    }
    new = {index: alone(place, values, index, conditions.get(index, ANY)) for index in indices}
    job = StoreChunks(place.writer, new)
    stored = place.through(job)
    for index, now in stored.items():
        key = place.array.key(index)
        if index in ((1, 2), (1, 3)):
            assert isinstance(now, StoreConflict)
            assert now.key == key
            assert place.store.objects[key] == before[key]
        elif index == (2, 2):
            assert now is None
            assert key not in place.store.objects
        else:
            assert now == place.store.info(key).generation
            part = place.part(index)
            (result,) = place.array.read_chunks([index])
            inside = tuple(map(slice, values[part].shape))
            assert np.array_equal(result.chunk[inside], values[part])
    # What was stored by a worker that was then believed dead is stored again.
    again = StoreChunks(place.writer, {i: new[i] for i in [(0, 1), (1, 1)]}).perform()
    assert again[0, 1] == place.store.info("c/0/1").generation
    assert isinstance(again[1, 1], StoreConflict)


@pytest.mark.parametrize("place", [False], indirect=True, ids=["chunks"])
def test_failures_of_the_store_keep_their_kind(place):
    values = place.values + np.int16(1)
    chunks = {index: alone(place, values, index) for index in [(0, 0), (0, 1)]}

    place.store.before = refusing(StoreFull, "put", key="c/0/1")
    stored = place.through(StoreChunks(place.writer, chunks))
    assert isinstance(stored[0, 0], tuple)
    assert type(stored[0, 1]) is StoreFull
    assert str(stored[0, 1]) == "c/0/1: by this test"


@pytest.mark.parametrize("place", [False], indirect=True, ids=["chunks"])
def test_a_lone_chunk_is_not_passed_on(place):
    new = {(0, 0): alone(place, place.values, (0, 0))}
    assert StoreChunks(place.writer, new).pack(place) is None


@pytest.mark.parametrize("place", [True], indirect=True, ids=["shards"])
def test_whole_shards_are_stored(place):
    """As threads store them; inner chunks of fill values only are left out, and shards of these."""
    place.fill()
    values = place.values[::-1] + np.int16(1)
    values[place.part((1, 1))] = 7
    values[:6, 8:16] = 7
    stored = sorted({place.array.layout.stored_index(index) for index in place.all_indices()})
    new = {
        each: NewObject({i: place.chunk(values, i) for i in place.indices(each)}, ANY)
        for each in stored
    }
    results = place.through(StoreChunks(place.writer, new))
    assert results[0, 1] is None
    by_worker = dict(place.store.objects)
    assert place.array.key((0, 1)) not in by_worker
    for each, now in results.items():
        assert now == (
            None if each == (0, 1) else place.store.info(place.array.key(each)).generation
        )
    place.array.forget_others()
    for index in place.all_indices():
        (result,) = place.array.read_chunks([index])
        part = values[place.part(index)]
        missing = place.array.fill_chunk(index) if result.chunk is None else result.chunk
        assert np.array_equal(missing[tuple(map(slice, part.shape))], part)
    StoreChunks(place.writer, new).perform()
    assert place.store.objects == by_worker


def test_kinds_suit_arrays(place, monkeypatch):
    """Large chunks are read, and large objects encoded, by several threads at once."""
    processes = object()
    assert suited(ReadBlock, place.array, processes) is processes
    for kind in (ReadBlock, StoreChunks):
        assert suited(kind, place.array, None) is None
    layout = place.array.layout
    size = layout.spec(layout.stored.regular_shape).nbytes
    chunk = layout.spec(layout.read.regular_shape).nbytes
    for large, suits in ((chunk + 1, True), (chunk, place.array.light)):
        monkeypatch.setattr(read_block, "_LARGE_CHUNK", large)
        assert (suited(ReadBlock, place.array, processes) is processes) == suits
    for largest, suits in ((size, True), (size - 1, False)):
        monkeypatch.setattr(store_chunks, "_LARGEST_OBJECT", largest)
        assert (suited(StoreChunks, place.array, processes) is processes) == suits


def test_jobs_are_small(place):
    """One array of int16 with a million chunks of 16 bytes each: ranges, not chunks."""
    runs = tuple(
        [Run(i, slice(0, n), slice(i * n, i * n + n)) for i in range(1000)] for n in CHUNKS
    )
    target = place.memory.take(0).view("<i2")
    target = np.lib.stride_tricks.as_strided(target, (3000, 4000), (0, 0))
    packed = ReadBlock(place.array, Block(runs, target, target.dtype)).pack(place)
    assert len(pickle.dumps(packed.values)) < 1000


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


def jobs_of(place: Place) -> list[Job]:
    place.fill()
    jobs: list[Job] = [ReadBlock(place.array, block_of(place, 0, 60)[1])]
    if not place.array.layout.sharded:
        conditions = {(1, 1): ANY, (1, 2): (1,)}
        new = {i: alone(place, place.values, i, state) for i, state in conditions.items()}
        jobs.append(StoreChunks(place.writer, new))
    return jobs


def test_an_answer_that_is_none_is_refused(place):
    """Or it is one: then its parts have the types that a result has."""
    for job in jobs_of(place):
        packed = job.pack(place)
        answer = place.perform(packed, type(job))
        job.accept(copy.deepcopy(answer))
        refused = 0
        for other in damaged(answer):
            try:
                result = job.accept(other)
            except BadAnswer:
                refused += 1
                continue
            check(job, result)
        assert refused > 20


def check(job: Job, result) -> None:
    if isinstance(job, ReadBlock):
        assert 0 <= result.chunks <= job.block.count
        assert result.error is not None or result.chunks == job.block.count
        for stored, generation in result.seen:
            assert all(type(i) is int and i >= 0 for i in stored)
            assert generation is None or isinstance(generation, tuple)
    else:
        assert list(result) == list(job.objects)
