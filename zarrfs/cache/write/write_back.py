"""Sees to it that changes are stored: after a while, when memory runs short, and at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.stats import Stats
from zarrfs.cache.write.dirty_objects import Candidate
from zarrfs.cache.write.journal.journal import Journal, Kept
from zarrfs.cache.write.journal.pending import Pending
from zarrfs.errors import BudgetExceeded, ChunkError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.jobs.loaders import LoaderPool
from zarrfs.jobs.shared_work import share
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.scratch_file import ScratchBuffers
from zarrfs.memory.shared_memory import SharedMemory

# Memory comes back without a word where storing fails or others made no use of it.
_LOOK_AGAIN = 0.05
_SHORTEST_TICK = 0.01
# Objects that are stored at once, lest those that wait for that wait for long.
_MOST_TOGETHER = 32
# Memory for that: for large ones, encoding and writing take longer than the journal does.
_MEMORY_TOGETHER = 12 << 20


class Changes(Protocol):
    """Changes to one array that are not stored yet."""

    @property
    def dirty_bytes(self) -> int: ...

    @property
    def clean(self) -> bool:
        """Whether there are none."""
        ...

    @property
    def stores(self) -> tuple[int, int]:
        """How often anything was scheduled or begun to be stored, and how often that has ended."""
        ...

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        """The object to store first where memory is short, of those that nobody sees to.

        partly : also one of which only a part is new.
        """
        ...

    def scatter(self) -> bool:
        """Bring what was written last into its chunks, where it is not yet; whether it was not."""
        ...

    def flush_older(self, limit: float) -> None:
        """Have stored what was changed before ``limit``. Does not block."""
        ...

    def flush(self) -> None:
        """Store all changes, several objects at once. Blocks. Raises the first ZarrfsError."""
        ...

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks. Raises ZarrfsError."""
        ...

    def pending(self) -> Iterable[Pending]:
        """All changes, one at a time, for the journal."""
        ...


class WriteBack:
    """All changes of a mount that are not stored yet, under one budget.

    Shared state, under ``_lock``, which is held for a few steps only: ``_changes``, all there
    are, and ``_retired``, those of them that are forgotten when they are clean.

    storing : bytes of memory for what is being stored. A single object may take more, but
        then nothing else is stored at the same time.
    flushers : threads that store.
    delay : seconds after which a change is stored even if nobody asks.
    spill : directory for what is written in order where memory is short; None: nowhere.
    staging : buffers in files there.
    passing : memory that chunks are passed in to and from those processes which share ``shared``.
    """

    def __init__(
        self,
        budget: MemoryBudget,
        storing: int,
        flushers: int,
        delay: float,
        stats: Stats,
        shared: SharedMemory | None = None,
        spill: str | None = None,
    ) -> None:
        self.budget = budget
        self.staging = ScratchBuffers(spill)
        # Nobody waits here for what was lent to be filled.
        self._arena = Arena(budget, shared=shared, whole=True)
        self._stats = stats
        self._storing = MemoryBudget(storing)
        self.passing = Arena(self._storing, shared=shared)
        self.flushers = flushers
        self._pool = LoaderPool(flushers)
        self._delay = delay
        self._changes: list[Changes] = []
        self._retired: list[Changes] = []
        self._lock = ranked_lock(Rank.WRITE_BACK)
        # Each once, however often it is owed.
        self._owed: dict[Callable[[], None], None] = {}
        self._closing = Event()
        self._clock = Thread(target=self._run_clock, name="write-back", daemon=True)
        self._clock.start()

    def register(self, changes: Changes) -> None:
        """From now on see to it that these are stored."""
        with self._lock:
            self._changes.append(changes)

    def retire(self, changes: Changes) -> None:
        """Nobody will change anything there again: forget these as soon as all is stored."""
        with self._lock:
            self._retired.append(changes)
        self._forget_retired()

    def _forget_retired(self) -> None:
        with self._lock:
            clean = [changes for changes in self._retired if changes.clean]
            self._retired = [changes for changes in self._retired if changes not in clean]
            self._changes = [changes for changes in self._changes if changes not in clean]

    def submit(self, job: Callable[[], None], *, ahead: bool = False) -> None:
        """Run ``job`` in a thread that may wait for the store.

        ahead : nobody waits for it, so it comes after what somebody waits for.
        """
        self._pool.submit(job, ahead=ahead)

    def each(self, work: Callable[[int], None], count: int) -> None:
        """``work`` with every number below ``count``, in this thread and in those that are idle.

        Raises what ``work`` raises first.
        """
        share(self._pool, self.flushers - 1, work, count)

    def owe(self, work: Callable[[], None]) -> None:
        """Have `settle` do ``work``, unless it is needed earlier."""
        self._owed[work] = None

    def settle(self) -> None:
        """Do what writes left to be done for after they were answered. Event loop only."""
        while self._owed:
            # What fails is still owed: whoever needs it does it again, and is told.
            with suppress(Exception):
                self._owed.popitem()[0]()

    def failed(self, key: str, error: ZarrfsError) -> None:
        """An object could not be stored, and nobody waited for it."""
        self._stats.error(key, f"cannot be stored, will be tried again: {error}")

    def resize(self, budget: int, storing: int) -> None:
        """Change the memory for changes, and for what is being stored, in bytes."""
        self.budget.resize(budget)
        self._storing.resize(storing)

    @property
    def room_for_parts(self) -> int:
        """Bytes of tiles that are new in part, of one object, which are stored at once."""
        return self._storing.total

    def together(self, cost: int) -> int:
        """How many objects a thread may store at once, of which each takes ``cost`` bytes."""
        room = min(_MEMORY_TOGETHER, self._storing.total // self.flushers)
        return max(1, min(_MOST_TOGETHER, room // max(1, cost)))

    @contextmanager
    def room_to_store(self, size: int) -> Iterator[None]:
        """Wait for memory to store an object with. Whoever has it waits for the store alone."""
        size = min(size, self._storing.total)
        self._storing.reserve(size)
        try:
            yield
        finally:
            self._storing.release(size)

    def lend(self, size: int, beside: int, *, shared: bool) -> NDArray[np.uint8] | None:
        """A buffer of ``size`` bytes, and ``beside`` more reserved; None if there is no room now.

        The buffer comes back by itself; see `Arena`.

        shared : for processes to read, if it can be.
        """
        if not self.budget.try_reserve(beside):
            return None
        memory = self._arena.lend(size, shared=shared)
        if memory is None:
            self.budget.release(beside)
        return memory

    def lend_for_whole(self, size: int, beside: int, *, shared: bool) -> NDArray[np.uint8] | None:
        """The same, storing older changes to make room. Blocks.

        None where objects would have to be stored for that of which only a part is new.
        Raises ZarrfsError where nothing can be stored.
        """
        lent: list[NDArray[np.uint8]] = []

        def take() -> bool:
            if (memory := self.lend(size, beside, shared=shared)) is not None:
                lent.append(memory)
            return memory is not None

        if size + beside > self.budget.total:
            return None
        done = self._until(partial(self.budget.attempt, take), partly=False)
        return lent[0] if done else None

    def stage(self, size: int, beside: int) -> NDArray[np.uint8] | None:
        """As `lend_for_whole`; a buffer of zeros in a file, and only ``beside`` in memory."""

        def take() -> bool:
            if not self.budget.try_reserve(beside):
                return False
            if not self.staging.reserve():
                self.budget.release(beside)
                return False
            return True

        if beside > self.budget.total or size > self.staging.largest:
            return None
        if not self._until(partial(self.budget.attempt, take), partly=False):
            return None
        memory = self.staging.make(size)
        if memory is None:
            self.budget.release(beside)
        return memory

    def relieve(self, size: int) -> None:
        """Reserve ``size`` bytes for changes, storing old ones to make room. Blocks.

        Raises BudgetExceeded where there never is so much, and another ZarrfsError where
        nothing can be stored.
        """
        if size > self.budget.total:
            raise BudgetExceeded(
                f"changing one chunk takes {size} bytes, there is room for {self.budget.total}: "
                "raise it with -o memory="
            )
        self._until(partial(self.budget.try_reserve, size), partly=True)

    def _until(self, take: Callable[[float], bool], *, partly: bool) -> bool:
        """Store changes until ``take``, which waits for so many seconds, succeeds.

        partly : also objects of which only a part is new; else it returns False where
            nothing else is left.
        """
        damaged: dict[tuple[Changes, Index], ChunkError] = {}
        while True:
            before = self._stores()
            if take(0.0):
                return True
            idle = all(begun == ended for begun, ended in before)
            found = self._candidate(damaged, partly=idle)
            idle = idle and before == self._stores()
            if idle and (found is None or found[1].partial):
                # What others gather takes memory, too.
                if any(changes.scatter() for changes in self._all()):
                    continue
                if not partly:
                    return False
            if found is None or (found[1].partial and not idle):
                # What is being stored makes room soon. To store now what is new in part
                # only would take reading it, and storing it again when it is whole.
                if damaged and idle:
                    raise next(iter(damaged.values()))
                if take(_LOOK_AGAIN):
                    return True
                continue
            changes, candidate = found
            try:
                changes.flush_object(candidate.stored)
            except ChunkError as error:
                # Its own fault; it must not stand in the way of all others.
                damaged[changes, candidate.stored] = error

    def drain(self) -> list[ZarrfsError]:
        """Store everything. Blocks. What could not be stored stays; why is returned."""
        errors: list[ZarrfsError] = []
        for array in self._all():
            try:
                array.flush()
            except ZarrfsError as error:
                errors.append(error)
        return errors

    @property
    def dirty_bytes(self) -> int:
        """Bytes of chunks with changes that are not stored yet."""
        return sum(array.dirty_bytes for array in self._all())

    def keep(self, journal: Journal) -> Kept:
        """Save what could not be stored. Blocks."""
        # Those that register later are needed to judge the earlier ones: an array becomes
        # longer before its new rows are stored.
        return journal.keep(changes.pending() for changes in reversed(self._all()))

    def close(self) -> None:
        """Stop the threads. What is still dirty is lost: `drain` first."""
        self._closing.set()
        self._clock.join()
        self._pool.close()

    def _candidate(
        self, damaged: dict[tuple[Changes, Index], ChunkError], *, partly: bool
    ) -> tuple[Changes, Candidate] | None:
        best: tuple[Changes, Candidate] | None = None
        for changes in self._all():
            candidate = changes.candidate(
                lambda stored, changes=changes: (changes, stored) in damaged,  # type: ignore[misc]
                partly=partly,
            )
            if candidate is not None and (best is None or candidate < best[1]):
                best = changes, candidate
        return best

    def _stores(self) -> list[tuple[int, int]]:
        return [changes.stores for changes in self._all()]

    def _all(self) -> list[Changes]:
        with self._lock:
            return list(self._changes)

    def _run_clock(self) -> None:
        while not self._closing.wait(max(_SHORTEST_TICK, min(1.0, self._delay / 2))):
            limit = time.monotonic() - self._delay
            for array in self._all():
                array.flush_older(limit)
            self._forget_retired()
            if self.budget.used == self._arena.kept:
                # Nobody writes.
                self.budget.shrink()
