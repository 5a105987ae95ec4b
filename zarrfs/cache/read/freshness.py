"""Whether data read from an array still match the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock

from zarrfs.array.array import Array
from zarrfs.errors import StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.store.base import Generation

_MOST_CHECKED = 4096
_starts = count(0, 1 << 32)


class Freshness:
    """Remembers in which state each stored object of one array was read.

    recheck : seconds for which an answer of the store holds; infinity: for ever.
    epoch : grows whenever data that may have been handed out may be out of date, so that readers
        drop copies from an older epoch.
    foreign : how many of these steps other writers caused; it begins like the epoch.
    changed_ns : when a change was last noticed, in nanoseconds since the epoch of the clock; 0 if
        never.
    checks : how many checks have begun. A load that began in an earlier one may bring bytes that
        are older than the last check: only readers who asked before it may have them.
    not_before : chunks that were current in an earlier check than this must be checked again one by
        one.
    """

    def __init__(self, array: Array, recheck: float) -> None:
        self._array = array
        self._recheck = recheck
        self._seen: dict[Index, Generation | None] = {}
        self._checked = time.monotonic()
        self._lock = Lock()
        self._turn = Lock()
        # Differs from all epochs of an earlier object for the same array.
        self.epoch = self.foreign = next(_starts)
        self.changed_ns = 0
        self.checks = self.not_before = 0

    def saw(self, stored: Index, generation: Generation | None) -> bool:
        """A stored object was read in this state (None: it does not exist).

        Returns whether it was in another state before, so that earlier data are out of date.
        """
        return bool(self.saw_all([(stored, generation)]))

    def saw_all(self, seen: Iterable[tuple[Index, Generation | None]]) -> list[Index]:
        """As `saw` for each object; returns those that were in another state before."""
        changed = []
        with self._lock:
            known = self._seen
            for stored, generation in seen:
                if stored not in known:
                    if len(known) <= _MOST_CHECKED:
                        known[stored] = generation
                elif known[stored] != generation:
                    known[stored] = generation
                    changed.append(stored)
                    self.foreign += 1
                    self._note_change()
        return changed

    def remembers(self, stored: Iterable[Index]) -> bool:
        """Whether `saw` would record the state of any of these objects.

        If not, `check` trusts no earlier read.
        """
        with self._lock:
            known = self._seen
            return len(known) <= _MOST_CHECKED or any(index in known for index in stored)

    def wrote(self, stored: Index, generation: Generation | None) -> None:
        """This mount has brought a stored object into this state."""
        with self._lock:
            if stored in self._seen or len(self._seen) <= _MOST_CHECKED:
                self._seen[stored] = generation
            self._note_change()

    def touched(self) -> None:
        """The data have changed in this mount and are not stored yet."""
        self.changed_ns = time.time_ns()

    def due(self) -> bool:
        """Whether `check` would ask the store."""
        return time.monotonic() - self._checked >= self._recheck

    def expire(self) -> None:
        """Trust no earlier read any more. Waits for nothing but a lock."""
        now = time.monotonic()
        self._array.forget_others()
        with self._lock:
            self._checked = now
            self._seen.clear()
            self.checks += 1
            self.not_before = self.checks
            self.foreign += 1
            self.epoch += 1

    def check(self, drop: Callable[[list[Index]], None]) -> None:
        """Bring `epoch` up to date. May block; one thread at a time checks, others wait for it.

        drop : called with the stored objects that have changed, if any. The check is over, and
            `due` is false, only when `drop` has returned: a reader that opens a file before that
            must not be served what is about to be dropped.
        """
        with self._turn:
            if self.due():
                self._check(drop)

    def _check(self, drop: Callable[[list[Index]], None]) -> None:
        now = time.monotonic()
        with self._lock:
            seen = dict(self._seen)
        if len(seen) > _MOST_CHECKED or not self._array.store.traits.near:
            # Asking the store for each object would take too long. Instead each chunk is checked
            # when it is used next, and data that were handed out count as out of date.
            self.expire()
            return
        # The states of other shards come from loads that have not ended.
        self._array.forget_others(seen)
        with self._lock:
            self.checks += 1
            # Loads that end from now on know that they began before the check.
            seen = dict(self._seen)
        changed = [stored for stored, state in seen.items() if self._state(stored) != state]
        if changed:
            self._array.forget(changed)
            drop(changed)
        with self._lock:
            for stored in changed:
                # A load may have seen the present state since.
                if stored in self._seen and self._seen[stored] == seen[stored]:
                    del self._seen[stored]
            if changed:
                self.foreign += 1
                self._note_change()
            self._checked = now

    def _state(self, stored: Index) -> Generation | None:
        try:
            info = self._array.stored_info(stored)
        except StoreError:
            return ("unknown", time.monotonic())
        return None if info is None else info.generation

    def _note_change(self) -> None:
        self.epoch += 1
        self.changed_ns = time.time_ns()
