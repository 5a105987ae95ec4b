"""Stores changes: after a delay, when memory runs short, and when the mount ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from os import cpu_count
from threading import Event, Thread
from typing import TypeVar

from zarrfs.cache.stats import Stats
from zarrfs.cache.write.dirty_objects import Candidate
from zarrfs.cache.write.gather_memory import GatherMemory
from zarrfs.cache.write.journal.journal import Journal, Kept
from zarrfs.cache.write.journal.pending import Pending
from zarrfs.errors import BudgetExceeded, ChunkError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.locks import Rank, ranked_lock
from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import LongWait, MemoryBudget
from zarrfs.memory.shared_memory import SharedMemory
from zarrfs.threads import ThreadPool, share

R = TypeVar("R")


class Changes:
    """Changes to one array that are not stored yet.

    dirty_bytes : of chunks with changes.
    clean : whether there are no changes.
    stores : how often storing was scheduled or begun, and how often it has ended.
    """

    @property
    def dirty_bytes(self) -> int:
        return 0

    @property
    def clean(self) -> bool:
        raise NotImplementedError

    @property
    def stores(self) -> tuple[int, int]:
        return 0, 0

    def candidate(self, skip: Callable[[Index], bool], *, partly: bool) -> Candidate | None:
        """The object to store first if memory is short, except those being stored or scheduled.

        partly : also consider objects of which only a part is new.
        """
        return None

    def scatter(self) -> bool:
        """Scatter the latest sequential writes to their chunks; returns whether there were any."""
        return False

    def flush_older(self, limit: float) -> None:
        """Start to store changes made before ``limit``. Does not block."""
        raise NotImplementedError

    def flush(self) -> None:
        """Store all changes, several objects at once. Blocks. Raises the first ZarrfsError."""
        raise NotImplementedError

    def flush_object(self, stored: Index) -> None:
        """Store the changes of one object. Blocks. Raises ZarrfsError."""

    def pending(self) -> Iterable[Pending]:
        """All changes, one at a time, for the journal."""
        raise NotImplementedError


# Seconds until the next attempt: memory that comes back after a failed store, or without having
# been used, wakes no thread.
_LOOK_AGAIN = 0.05
_SHORTEST_TICK = 0.01
# The most objects of one batch, so that threads that wait for one of them do not wait long.
_BATCH_OBJECTS = 32
# Threads that copy writes after their answers, at least. To copy a write to new memory takes longer
# than to send it.
_COPIERS = 2
# Bytes of writes that were answered and wait to be copied, beside the budget; with a small budget,
# that part of it.
_MOST_UNCOPIED = 8 << 20
_UNCOPIED_PART = 8
# Memory for one batch: encoding and writing more takes longer than making it durable.
_BATCH_BYTES = 12 << 20


class WriteBack:
    """All changes of a mount that are not stored yet, under one budget.

    Shared state, under ``_lock``, which is held for a few steps only: ``_changes``, the changes of
    all arrays; ``_retired``, those of them that are forgotten when they are clean; ``_uncopied``,
    bytes of writes that are not gathered yet; ``_storing_now``, how many threads have room to
    store.

    storing : bytes of memory for objects that are being stored. A single object may take more, but
        then nothing else is stored at the same time.
    flushers : number of threads that store.
    delay : seconds after which a change is stored even without fsync or close.
    spill : directory for sequential writes if memory is short; None: no such directory.
    memory : in which sequential writes are gathered.
    after_reply : has the event loop call a function once it has replied; False if it will not.
    passing : memory that passes chunks to and from the worker processes that share ``shared``.
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
        self.memory = GatherMemory(budget, spill, partial(self._until, partly=False))
        self._stats = stats
        self._storing = MemoryBudget(storing)
        self.passing = Arena(self._storing, shared=shared)
        self.flushers = flushers
        self._pool = ThreadPool(flushers, keeps=True)
        # Encoding and copying wait for a processor only, storing for a store that may be distant.
        # Copies come first: `share` has its helpers come after what others wait for.
        self._helpers = ThreadPool(max(_COPIERS, min(flushers - 1, cpu_count() or 1)))
        self._storing_now = 0
        self._delay = delay
        # In the order of `register`.
        self._changes: dict[Changes, None] = {}
        self._retired: list[Changes] = []
        self._lock = ranked_lock(Rank.WRITE_BACK)
        self.after_reply: Callable[[Callable[[], None]], bool] = lambda _work: False
        self._uncopied = 0
        self._closing = Event()
        self._clock = Thread(target=self._run_clock, name="write-back", daemon=True)
        self._clock.start()

    def register(self, changes: Changes) -> None:
        """From now on store these changes."""
        with self._lock:
            self._changes[changes] = None

    def retire(self, changes: Changes) -> None:
        """No writer will add to these changes: forget them as soon as all of them are stored."""
        with self._lock:
            self._retired.append(changes)
        self._forget_retired()

    def _forget_retired(self) -> None:
        with self._lock:
            retired, self._retired = self._retired, []
            for changes in retired:
                if changes.clean:
                    self._changes.pop(changes, None)
                else:
                    self._retired.append(changes)

    def submit(self, job: Callable[[], None], *, ahead: bool = False) -> None:
        """Run ``job`` in a thread that may wait for the store.

        ahead : no caller waits for it, so it comes after jobs that callers wait for.

        Where the system has no thread the job is left out, and the clock asks for it again.
        """
        with suppress(RuntimeError):
            self._pool.submit(job, ahead=ahead)

    def share(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work`` with every number below ``count``, in this thread and in those of `submit`.

        At the end of the program, or where threads run short, this thread does all of it.
        """
        share(self._pool, self.flushers, work, count, ahead=False)

    def each(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work`` with every number below ``count``, in this thread and in others.

        Others help in place of flushers that store nothing now. Some of these wait for memory to
        store, so helpers are threads of their own.

        Raises the first error of ``work``.
        """
        with self._lock:
            idle = self.flushers - self._storing_now
        share(self._helpers, max(0, idle), work, count)

    def copy_soon(
        self, size: int, keep: Callable[[], None], work: Callable[[], None], *, quick: bool = False
    ) -> bool:
        """Have ``work`` called, which copies ``size`` bytes of a write. Event loop only.

        Returns False if many bytes wait for that already.

        keep : called now, if ``work`` will be called.
        quick : whether ``work`` takes less time than handing it to a thread.
        """
        most = min(_MOST_UNCOPIED, self.budget.total // _UNCOPIED_PART)
        with self._lock:
            if self._uncopied and self._uncopied + size > most:
                return False
            self._uncopied += size

        def copy() -> None:
            try:
                # The thread that needs the data copies them again, and gets the error.
                with suppress(Exception):
                    work()
            finally:
                with self._lock:
                    self._uncopied -= size

        keep()
        if not quick or not self.after_reply(copy):
            try:
                self._helpers.submit(copy)
            except RuntimeError:
                copy()
        return True

    def failed(self, key: str, error: ZarrfsError) -> None:
        """An object could not be stored, and no caller waited for it."""
        self._stats.error(key, f"cannot be stored, will be tried again: {error}")

    def resize(self, budget: int, storing: int) -> None:
        """Change the memory for changes, and for objects being stored, in bytes."""
        self.budget.resize(budget)
        self._storing.resize(storing)

    @property
    def room_for_parts(self) -> int:
        """Bytes of tiles of one object, new in part, that are stored at once."""
        return self._storing.total

    def batch_size(self, cost: int) -> int:
        """How many objects of ``cost`` bytes each a thread may store in a batch."""
        room = min(_BATCH_BYTES, self._storing.total // self.flushers)
        return max(1, min(_BATCH_OBJECTS, room // max(1, cost)))

    @contextmanager
    def room_to_store(self, size: int) -> Iterator[None]:
        """Wait for memory to store an object. A thread that has it waits only for the store."""
        size = min(size, self._storing.total)
        self._storing.reserve(size)
        with self._lock:
            self._storing_now += 1
        try:
            yield
        finally:
            with self._lock:
                self._storing_now -= 1
            self._storing.release(size)

    def relieve(self, size: int) -> None:
        """Reserve ``size`` bytes for changes, storing old ones to make room. Blocks.

        Raises BudgetExceeded if the budget is smaller than that, and another ZarrfsError if nothing
        can be stored.
        """
        if size > self.budget.total:
            raise BudgetExceeded(
                f"changing one chunk takes {size} bytes, there is room for {self.budget.total}: "
                "raise it with -o memory="
            )
        self._until(partial(self.budget.try_reserve, size), partly=True)

    def _until(self, take: Callable[[float], R], scatter: bool = True, *, partly: bool) -> R | None:
        """Store changes until ``take``, which waits for the given number of seconds, succeeds.

        Returns its result, which is true then.

        partly : also store objects of which only a part is new; otherwise return None if no other
            objects are left.
        scatter : scatter before that what other files have gathered.
        """
        damaged: dict[tuple[Changes, Index], ChunkError] = {}
        wait = LongWait()
        while True:
            before = self._stores()
            if taken := take(0.0):
                return taken
            idle = all(begun == ended for begun, ended in before)
            found = self._candidate(damaged, partly=idle)
            idle = idle and before == self._stores()
            if idle and (found is None or found[1].partial):
                # Gathered data of other files take memory, too.
                if scatter and any(changes.scatter() for changes in self._all()):
                    continue
                if not partly:
                    return None
            if found is None or (found[1].partial and not idle):
                # Objects that are being stored free memory soon. Storing an object that is new in
                # part now would mean to read it, and to store it again when it is whole.
                if damaged and idle:
                    raise next(iter(damaged.values()))
                wait.goes_on()
                if taken := take(_LOOK_AGAIN):
                    return taken
                continue
            changes, candidate = found
            try:
                changes.flush_object(candidate.stored)
            except ChunkError as error:
                # The error concerns this chunk only; it must not affect all others.
                damaged[changes, candidate.stored] = error

    def drain(self) -> list[ZarrfsError]:
        """Store everything. Blocks. Returns the errors; changes that could not be stored stay."""
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
        """Save changes that could not be stored in the journal. Blocks."""
        # Later registered changes come first, because they are needed to judge the others: an array
        # grows before its new rows are stored.
        return journal.keep(changes.pending() for changes in reversed(self._all()))

    def close(self) -> None:
        """Stop the threads. Changes that are still dirty are lost: call `drain` first."""
        self._closing.set()
        self._clock.join()
        self._pool.close()
        self._helpers.close()

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
            if self.budget.used == self.memory.arena.kept:
                # No writer is active.
                self.budget.shrink()
