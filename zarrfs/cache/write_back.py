"""Sees to it that changes are stored: after a while, when memory runs short, and at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Protocol

from zarrfs.cache.budget import MemoryBudget
from zarrfs.cache.journal import Journal
from zarrfs.cache.loaders import LoaderPool
from zarrfs.errors import ZarrfsError
from zarrfs.format.chunk_grid import Index


class Changes(Protocol):
    """Changes to one array that are not stored yet; see `WritableArray`."""

    @property
    def dirty_bytes(self) -> int: ...

    def oldest(self) -> tuple[float, Index] | None: ...

    def older_than(self, limit: float) -> list[Index]: ...

    def flush(self) -> None: ...

    def flush_object(self, stored: Index) -> None: ...

    def flush_quietly(self, stored: Index) -> None: ...

    def keep(self, journal: Journal) -> list[Path]: ...


class WriteBack:
    """All changes of a mount that are not stored yet, under one budget.

    delay : seconds after which a change is stored even if nobody asks.
    """

    def __init__(self, budget: MemoryBudget, flushers: int, delay: float) -> None:
        self.budget = budget
        self._pool = LoaderPool(flushers)
        self._delay = delay
        self._changes: list[Changes] = []
        self._lock = Lock()
        self._closing = Event()
        self._clock = Thread(target=self._run_clock, name="write-back", daemon=True)
        self._clock.start()

    def register(self, changes: Changes) -> None:
        """From now on see to it that these are stored."""
        with self._lock:
            self._changes.append(changes)

    def submit(self, job: Callable[[], None]) -> None:
        """Run ``job`` in a thread that may wait for the store."""
        self._pool.submit(job)

    def relieve(self, size: int) -> None:
        """Reserve ``size`` bytes for changes, storing old ones to make room. Blocks.

        Raises ZarrfsError where room cannot be made.
        """
        while not self.budget.try_reserve(size):
            candidates = [
                (since, changes, stored)
                for changes in self._all()
                if (found := changes.oldest()) is not None
                for since, stored in [found]
            ]
            if not candidates:
                # What holds the memory is being stored by others right now.
                time.sleep(0.005)
                continue
            _, changes, stored = min(candidates, key=lambda candidate: candidate[0])
            changes.flush_object(stored)

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

    def keep(self, journal: Journal) -> list[Path]:
        """Save what could not be stored. Blocks. Raises JournalError."""
        return [file for changes in self._all() for file in changes.keep(journal)]

    def close(self) -> None:
        """Stop the threads. What is still dirty is lost: `drain` first."""
        self._closing.set()
        self._clock.join()
        self._pool.close()

    def _all(self) -> list[Changes]:
        with self._lock:
            return list(self._changes)

    def _run_clock(self) -> None:
        while not self._closing.wait(min(1.0, self._delay / 2)):
            limit = time.monotonic() - self._delay
            for array in self._all():
                for stored in array.older_than(limit):
                    self.submit(partial(array.flush_quietly, stored))
