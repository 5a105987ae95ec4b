"""Which changes are known to who stores them, and for how long."""

import gc
import threading
import time
from contextlib import closing
from functools import partial

from zarrfs.cache.stats import Stats
from zarrfs.cache.write.write_back import Changes, WriteBack
from zarrfs.memory.budget import MemoryBudget

MIB = 1 << 20


class Counted(Changes):
    """Changes of so many bytes; without bytes they are stored."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def dirty_bytes(self) -> int:
        return self.size

    @property
    def clean(self) -> bool:
        return not self.size

    def flush_older(self, limit: float) -> None:
        pass


def test_retired_changes_are_forgotten_as_soon_as_they_are_stored():
    # Longer than this test takes: nothing happens by itself.
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        first, second = Counted(3), Counted(5)
        for changes in first, second:
            write_back.register(changes)
        write_back.retire(first)
        assert write_back.dirty_bytes == 8
        first.size = 0
        # Whatever is retired is looked at again then.
        write_back.retire(second)
        first.size = 100
        assert write_back.dirty_bytes == 5


def test_changes_are_retired_under_the_lock():
    """Other threads go through what is registered, and retire others."""
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        free: list[bool] = []

        def look() -> None:
            free.append(write_back._lock.acquire(blocking=False))
            if free[-1]:
                write_back._lock.release()

        class Watched(Counted):
            @property
            def clean(self) -> bool:
                look()
                return True

        class Retired(list[Changes]):
            def append(self, changes: Changes) -> None:
                look()
                super().append(changes)

        write_back._retired = Retired()
        changes = Watched(0)
        write_back.register(changes)
        write_back.retire(changes)
        assert changes not in write_back._changes
        assert free == [False, False]


def test_memory_for_objects_being_stored_can_change():
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        write_back.resize(3 * MIB, 2 * MIB)
        assert write_back.budget.total == 3 * MIB
        assert write_back.room_for_parts == 2 * MIB


def test_no_staging_buffer_is_lent_without_memory_for_its_chunks(tmp_path):
    spill = str(tmp_path)
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats(), spill=spill)) as write_back:
        budget = write_back.budget
        stage = partial(write_back.memory.stage, 4096, 512, 10)
        assert budget.try_reserve(MIB - 20)
        lent = [stage(), stage()]
        assert all(buffer.in_file and len(buffer.memory) == 4096 for buffer in lent)
        # There may be two at once.
        assert stage() is None
        assert budget.used == MIB
        lent.clear()
        assert stage() is None
        assert budget.used == MIB


def test_a_buffer_is_staged_in_memory_if_there_is_room_and_its_marks_in_a_file(
    tmp_path, monkeypatch
):
    spill = str(tmp_path)
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats(), spill=spill)) as write_back:
        budget = write_back.budget
        stage = partial(write_back.memory.stage, MIB // 4 * 3, MIB, 10)
        first = stage()
        assert not first.in_file
        assert len(first.memory) == MIB // 4 * 3
        assert len(first.marks) == MIB
        assert not first.marks.any()
        assert budget.used == MIB // 4 * 3 + 10
        second = stage()
        assert second.in_file
        assert len(second.memory) == MIB // 4 * 3
        assert len(second.marks) == MIB
        assert not second.marks.any()
        assert budget.used == MIB // 4 * 3 + 20
        assert stage() is None
        del second
        budget.release(20)
        del first
        # Not if the disk has no room for marks.
        monkeypatch.setattr(
            write_back.memory.staging, "make", lambda _: write_back.memory.staging.release()
        )
        assert stage() is None
        assert budget.used == write_back.memory.arena.kept


def test_what_others_have_gathered_makes_no_room_to_stage_in_memory(tmp_path):
    """Stored in part, it would be stored again. A staging file takes no memory from it."""
    spill = str(tmp_path)
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats(), spill=spill)) as write_back:

        class Gathered(Counted):
            scattered = False

            def scatter(self) -> bool:
                self.scattered = True
                return False

        write_back.register(gathered := Gathered(1))
        assert write_back.budget.try_reserve(MIB // 2)
        assert write_back.memory.stage(MIB // 4 * 3, MIB, 10).in_file
        assert not gathered.scattered


def test_a_writer_gets_memory_that_only_a_cycle_of_references_keeps():
    """Such a cycle is left by an exception that a variable of one of its frames refers to."""
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        cycle: list[object] = [write_back.memory.lend(MIB, 0)]
        cycle.append(cycle)
        gc.disable()
        try:
            del cycle
            write_back.relieve(MIB)
        finally:
            gc.enable()


def test_writes_that_wait_to_be_copied_take_a_part_of_a_small_budget():
    with closing(WriteBack(MemoryBudget(MIB), MIB, 1, 1000.0, Stats())) as write_back:
        go_on, kept = threading.Event(), []

        def copy_soon(size: int) -> bool:
            return write_back.copy_soon(size, lambda: kept.append(size), go_on.wait)

        # A single one may take more, or a program that writes large blocks waits for each.
        assert copy_soon(100 << 10)
        assert copy_soon(28 << 10)
        assert not copy_soon(1)
        assert kept == [100 << 10, 28 << 10]
        go_on.set()


def test_threads_that_wait_for_memory_to_store_leave_their_work_to_others():
    """Otherwise one thread alone would encode a shard if there is memory for one at a time."""
    with closing(WriteBack(MemoryBudget(MIB), 100, 3, 1000.0, Stats())) as write_back:
        together, done = threading.Barrier(3), threading.Semaphore(0)

        def store() -> None:
            with write_back.room_to_store(100):
                write_back.each(lambda _number: together.wait(20) and None, 3)
                done.release()

        for _ in range(3):
            write_back.submit(store)
        for _ in range(3):
            assert done.acquire(timeout=20)


def test_what_others_store_needs_their_threads():
    """No more threads than may store are busy, however many shards are stored at once."""
    with closing(WriteBack(MemoryBudget(MIB), 100, 3, 1000.0, Stats())) as write_back:
        lock, go_on, three = threading.Lock(), threading.Event(), threading.Event()
        busy = [0, 0]

        def work(_number: int) -> None:
            with lock:
                busy[0] += 1
                busy[1] = max(busy)
                if busy[0] == 3:
                    three.set()
            # The first ones wait until all of them are here.
            assert three.wait(20)
            time.sleep(0.005)
            with lock:
                busy[0] -= 1

        def store() -> None:
            with write_back.room_to_store(30):
                all_here.wait(20)
                write_back.each(work, 20)
                all_here.wait(20)
            go_on.set()

        all_here = threading.Barrier(3)
        for _ in range(3):
            write_back.submit(store)
        assert go_on.wait(20)
        assert busy[1] == 3


def test_no_thread_is_left_at_the_end():
    before = set(threading.enumerate())
    write_back = WriteBack(MemoryBudget(MIB), MIB, 2, 1000.0, Stats())
    together = threading.Barrier(3)
    for _ in range(2):
        write_back.submit(lambda: together.wait(20) and None)
    together.wait(20)
    write_back.copy_soon(10, lambda: None, lambda: None)
    write_back.each(lambda _: time.sleep(0.01), 4)
    # Two that store, at least one that copies and encodes, and the clock.
    assert len(set(threading.enumerate()) - before) >= 4
    write_back.close()
    assert set(threading.enumerate()) <= before
