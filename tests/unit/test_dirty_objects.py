"""What is listed to be stored of an object while it goes on changing."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from tests.fs.arrays import open_array
from tests.fs.documents import array_document
from tests.fs.memory_store import MemoryStore
from zarrfs.cache.write.dirty_objects import DirtyObjects
from zarrfs.format.chunk_grid import Index

CHUNK = (0,)


class Watched(dict[Index, object]):
    """Calls a function after it has been gone through."""

    def __init__(self, then) -> None:
        super().__init__()
        self._then = then

    def __iter__(self) -> Iterator[Index]:
        yield from list(super().__iter__())
        self._then()


def test_a_chunk_that_becomes_a_whole_one_meanwhile_is_listed():
    document = array_document((2000,), (1000,))
    dirty = DirtyObjects(open_array(MemoryStore({"zarr.json": document})))
    value = np.array([5], "<i2")
    assert dirty.scatter(CHUNK, CHUNK, (slice(3, 4),), value, value.dtype)

    def turn() -> None:
        with dirty.changed:
            dirty.add(CHUNK, CHUNK)

    other = threading.Thread(target=turn)

    def begin() -> None:
        other.start()
        other.join(0.2)  # it may have to wait until everything is listed

    dirty._objects[CHUNK].chunks = Watched(begin)
    assert dirty.begin(CHUNK)
    assert list(dirty.copies(CHUNK)) == [CHUNK]
    other.join()
    dirty.end(CHUNK)
    assert dirty.find(CHUNK) is not None


def test_what_somebody_stores_need_not_be_waited_for():
    document = array_document((2000,), (1000,))
    dirty = DirtyObjects(open_array(MemoryStore({"zarr.json": document})))
    value = np.array([5], "<i2")
    assert dirty.scatter(CHUNK, CHUNK, (slice(3, 4),), value, value.dtype)
    assert dirty.begin(CHUNK, wait=False)
    assert not dirty.begin(CHUNK, wait=False)
    dirty.end(CHUNK)
    assert dirty.begin(CHUNK, wait=False)


def listed(dirty: DirtyObjects, *, partly: bool) -> Index | None:
    found = dirty.candidate(lambda stored: False, partly=partly)
    return None if found is None else found.stored


def written(dirty: DirtyObjects, chunk: Index, count: int) -> None:
    with dirty.changed:
        if dirty.find(chunk) is None:
            dirty.add(chunk, chunk)
        where, values = (slice(0, count),), np.zeros(count, "<i2")
        dirty.change(chunk, chunk, lambda found: found.write(where, values, values.dtype) is None)


def test_what_is_scheduled_is_left_to_whoever_stores_it():
    document = array_document((2000,), (1000,))
    dirty = DirtyObjects(open_array(MemoryStore({"zarr.json": document})))
    written(dirty, (0,), 1000)
    written(dirty, (1,), 10)
    assert listed(dirty, partly=False) == (0,)
    with dirty.changed:
        assert dirty.schedule_whole((0,))
        assert not dirty.schedule_whole((0,))
        assert not dirty.schedule_whole((1,))
    assert listed(dirty, partly=False) is None
    assert listed(dirty, partly=True) == (1,)
    # Memory comes free without anybody's doing as long as these differ.
    assert (dirty.begun, dirty.ended) == (1, 0)
    assert dirty.begin((0,))
    assert listed(dirty, partly=False) is None
    dirty.end((0,))
    assert (dirty.begun, dirty.ended) == (1, 1)
    # It could not be stored.
    assert listed(dirty, partly=False) == (0,)


def test_what_is_scheduled_beside_being_stored_is_counted_once_it_is_gone():
    document = array_document((2000,), (1000,))
    dirty = DirtyObjects(open_array(MemoryStore({"zarr.json": document})))
    written(dirty, (0,), 10)
    assert dirty.begin((0,))
    written(dirty, (0,), 1000)
    with dirty.changed:
        assert dirty.schedule_whole((0,))
    copies = dirty.copies((0,))
    dirty.settle((0,), copies)
    dirty.end((0,))
    assert not dirty
    assert dirty.begun == dirty.ended
    assert not dirty.begin((0,))
    assert dirty.begun == dirty.ended
