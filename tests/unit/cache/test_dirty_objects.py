"""What is listed to be stored of an object while it goes on changing."""

import threading

import numpy as np
import pytest

from tests.fs.arrays import open_array
from tests.fs.documents import array_document, sharding
from tests.fs.memory_store import MemoryStore
from zarrfs.cache.write.dirty_objects import DirtyObjects, Taken
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.tiles import Tiles
from zarrfs.format.chunk_grid import Index

CHUNK = (0,)


def objects() -> DirtyObjects:
    """Of two chunks, each of 1000 elements."""
    document = array_document((2000,), (1000,))
    return DirtyObjects(Tiles(open_array(MemoryStore({"zarr.json": document})).layout))


def written(dirty: DirtyObjects, tile: Index, count: int, value: int = 0) -> None:
    """Change the first elements of a tile, as a writer does."""
    values = np.full(count, value, "<i2")
    while True:
        found = dirty.find(tile)
        changes = TileChanges(dirty.tiles.form(tile)) if found is None else found
        with changes.lock:
            if changes.gone:
                continue
            was_whole = changes.whole
            changes.write((slice(0, count),), values, values.dtype)
            if not dirty.put([(tile, changes, was_whole)]):
                return


@pytest.fixture
def dirty():
    return objects()


def test_what_changes_between_the_list_and_the_copy_is_in_it_or_stays(dirty):
    """Few changes that become many meanwhile, and chunks that are new meanwhile."""
    written(dirty, CHUNK, 3)
    assert dirty.begin(CHUNK)
    found = dirty.find(CHUNK)
    taken: list[Taken] = []
    with found.lock:
        thread = threading.Thread(target=lambda: taken.append(dirty.copies(CHUNK, 1 << 20)))
        thread.start()
        values = np.full(900, 5, "<i2")
        found.write((slice(100, 1000),), values, values.dtype)
    thread.join()
    assert list(taken[0].tiles) == [CHUNK]
    dirty.forget_stored(CHUNK, taken[0].tiles, 0)
    dirty.end(CHUNK)
    assert not dirty


def test_an_object_that_changes_in_part_while_it_is_stored_is_not_whole_any_more(dirty):
    written(dirty, CHUNK, 1000, 1)
    assert dirty.bytes_in(CHUNK) == (2000, True)
    assert dirty.begin(CHUNK)
    copies = dirty.copies(CHUNK, 1 << 20).tiles
    written(dirty, CHUNK, 3, 2)
    dirty.forget_stored(CHUNK, copies, 0)
    dirty.end(CHUNK)
    assert dirty.bytes_in(CHUNK) == (2000, False)
    assert dirty.candidate(lambda _stored: False, partly=False) is None
    found = dirty.candidate(lambda _stored: False, partly=True)
    assert found is not None
    assert found.partial


def test_what_is_stored_during_a_snapshot_leaves_the_others_in_it():
    document = array_document((3000,), (1000,))
    dirty = DirtyObjects(Tiles(open_array(MemoryStore({"zarr.json": document})).layout))
    for number in range(3):
        written(dirty, (number,), 3, number + 1)
    snapshot = dirty.snapshot()
    seen = [next(snapshot)[0]]
    assert dirty.begin((1,))
    dirty.forget_stored((1,), dirty.copies((1,), 1 << 20).tiles, 0)
    dirty.end((1,))
    seen += [tile for tile, _ in snapshot]
    assert seen == [(0,), (2,)]


def test_nobody_who_asks_waits_for_whoever_copies(dirty):
    """The event loop asks all of these."""
    written(dirty, CHUNK, 900)
    answers: list[object] = []

    def ask() -> None:
        answers.append(dirty.find(CHUNK))
        answers.append(dirty.schedule(0.0))
        answers.append(dirty.candidate(lambda stored: False, partly=True))
        answers.append(dirty.dirty_bytes)
        dirty.leave(dirty.enter())

    with dirty.find(CHUNK).lock:
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()
    assert len(answers) == 4


def test_a_writer_whose_tile_is_stored_meanwhile_changes_another_one(dirty):
    written(dirty, CHUNK, 900, 1)
    stale = dirty.find(CHUNK)
    assert dirty.begin(CHUNK)
    dirty.forget_stored(CHUNK, dirty.copies(CHUNK, 1 << 20).tiles, 0)
    dirty.end(CHUNK)
    assert stale.gone
    written(dirty, CHUNK, 900, 2)
    assert dirty.find(CHUNK) is not stale


def test_there_is_room_for_one_part_at_least_and_the_rest_is_left():
    codecs = [sharding((4096,))]
    document = array_document((8 * 4096,), (8 * 4096,), codecs=codecs)
    dirty = DirtyObjects(Tiles(open_array(MemoryStore({"zarr.json": document})).layout))
    for number in range(8):
        written(dirty, (number,), 500)
    assert dirty.begin((0,))
    first = dirty.copies((0,), 1)
    assert (len(first.tiles), first.more, first.whole) == (1, True, False)
    dirty.forget_stored((0,), first.tiles, 0)
    rest = dirty.copies((0,), 3 * 2 * 4096)
    assert (len(rest.tiles), rest.more) == (3, True)
    dirty.forget_stored((0,), rest.tiles, 0)
    rest = dirty.copies((0,), 1 << 20)
    assert (len(rest.tiles), rest.more) == (4, False)
    dirty.forget_stored((0,), rest.tiles, 0)
    dirty.end((0,))
    assert not dirty


def test_an_object_has_all_bytes_of_its_changed_tiles_to_be_stored():
    codecs = [sharding((4096,))]
    document = array_document((3 * 4096,), (3 * 4096,), codecs=codecs)
    dirty = DirtyObjects(Tiles(open_array(MemoryStore({"zarr.json": document})).layout))
    written(dirty, (0,), 5)
    written(dirty, (2,), 4096)
    assert dirty.bytes_in((0,)) == (2 * 8192, False)
    written(dirty, (0,), 4096)
    written(dirty, (1,), 4096)
    assert dirty.bytes_in((0,)) == (3 * 8192, True)


def test_what_somebody_stores_need_not_be_waited_for(dirty):
    written(dirty, CHUNK, 1)
    assert dirty.begin(CHUNK, wait=False)
    assert not dirty.begin(CHUNK, wait=False)
    dirty.end(CHUNK)
    assert dirty.begin(CHUNK, wait=False)


def listed(dirty: DirtyObjects, *, partly: bool) -> Index | None:
    found = dirty.candidate(lambda stored: False, partly=partly)
    return None if found is None else found.stored


def test_who_reads_comes_and_goes_under_the_lock():
    """A reader that another one overwrote would not hear what is stored meanwhile."""
    missed: list[object] = []

    class Watched(DirtyObjects):
        @property
        def _readers(self) -> list[set[Index]]:
            self._check()
            return self._found

        @_readers.setter
        def _readers(self, readers: list[set[Index]]) -> None:
            if hasattr(self, "_found"):
                self._check()
            self._found = readers

        def _check(self) -> None:
            # In this thread, it can be taken if nobody has it.
            if self.changed.acquire(False):
                self.changed.release()
                missed.append(self)

    document = array_document((2000,), (1000,))
    dirty = Watched(Tiles(open_array(MemoryStore({"zarr.json": document})).layout))
    written(dirty, CHUNK, 10)
    first, second = dirty.enter(), dirty.enter()
    dirty.leave(second)
    assert dirty.begin(CHUNK)
    dirty.forget_stored(CHUNK, dirty.copies(CHUNK, 1 << 20).tiles, 0)
    dirty.end(CHUNK)
    assert (first, second) == ({CHUNK}, set())
    assert missed == []


def test_an_object_that_could_not_be_stored_comes_after_all_others(dirty):
    for number in range(2):
        written(dirty, (number,), 10)
    for number in (0, 1, 0):
        assert listed(dirty, partly=True) == (number,)
        assert dirty.begin((number,))
        dirty.end((number,))


def test_an_object_that_is_new_as_a_whole_comes_before_older_parts_of_any_array():
    """It is stored unread."""
    other, dirty = objects(), objects()
    written(other, (0,), 10)
    written(dirty, (0,), 10)
    written(dirty, (1,), 1000)
    parts, whole = (each.candidate(lambda stored: False, partly=True) for each in (other, dirty))
    assert (parts.partial, parts.stored) == (True, (0,))
    assert (whole.partial, whole.stored) == (False, (1,))
    assert whole < parts


def test_what_is_scheduled_is_left_to_whoever_stores_it(dirty):
    written(dirty, (0,), 1000)
    written(dirty, (1,), 10)
    assert listed(dirty, partly=False) == (0,)
    assert dirty.schedule_whole([(0,)])
    assert not dirty.schedule_whole([(0,)])
    assert not dirty.schedule_whole([(1,)])
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


def test_what_is_scheduled_beside_being_stored_is_counted_once_it_is_gone(dirty):
    written(dirty, (0,), 10)
    assert dirty.begin((0,))
    written(dirty, (0,), 1000)
    assert dirty.schedule_whole([(0,)])
    dirty.forget_stored((0,), dirty.copies((0,), 1 << 20).tiles, 0)
    dirty.end((0,))
    assert not dirty
    assert dirty.begun == dirty.ended
    assert not dirty.begin((0,))
    assert dirty.begun == dirty.ended


def whole(dirty: DirtyObjects, tile: Index, value: int) -> tuple[Index, TileChanges, bool]:
    """All elements of a tile."""
    form = dirty.tiles.form(tile)
    return tile, TileChanges(form, 0.0, np.full(form.shape, value, "<i2")), False


def test_new_tiles_are_due_at_once_unless_others_changed_them(dirty):
    written(dirty, (1,), 3, 1)
    assert dirty.put([whole(dirty, (0,), 5), whole(dirty, (1,), 6)]) == [(1,)]
    assert dirty.schedule_whole([(0,), (1,)]) == [(0,)]
    assert dirty.bytes_in((0,)) == (2000, True)
    assert not dirty.bytes_in((1,))[1]
    # The caller stores what is due: nobody else is told to.
    assert not dirty.schedule_whole([(0,)])
    assert dirty.begin((0,))
    taken = dirty.copies((0,), 1 << 20)
    assert taken.whole
    ((_, copy),) = taken.tiles.items()
    ((place, all_of_it),) = copy.places()
    assert all_of_it
    assert np.array_equal(copy.part(place), np.full(1000, 5, "<i2"))
    dirty.forget_stored((0,), taken.tiles, 0)
    dirty.end((0,))
    assert dirty.find((0,)) is None
    assert dirty.find((1,)) is not None


def test_a_shard_is_due_when_all_of_its_tiles_are_new():
    document = array_document((16000,), (8000,), codecs=[sharding((4000,))])
    dirty = DirtyObjects(Tiles(open_array(MemoryStore({"zarr.json": document})).layout))
    tiles = [(number,) for number in range(4)]
    assert [dirty.tiles.stored(tile) for tile in tiles] == [(0,), (0,), (1,), (1,)]
    for some, due in ((tiles[:1], []), (tiles[1:3], [(0,)]), (tiles[3:], [(1,)])):
        assert dirty.put([whole(dirty, tile, 1) for tile in some]) == []
        assert dirty.schedule_whole(some) == due
    assert dirty.put([whole(dirty, tile, 4) for tile in tiles]) == tiles
