"""Whether what was read from an array is still what the store holds."""

from __future__ import annotations

import time
from collections.abc import Iterable
from threading import Lock

from zarrfs.array.array import Array
from zarrfs.errors import StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.store.base import Generation

_MOST_CHECKED = 4096


class Freshness:
    """Remembers in which state each stored object of one array was read.

    recheck : seconds for which an answer holds; infinity trusts the store for ever.

    epoch : grows when data that may have been handed out are not sure to be current
        any more, so that whoever kept copies of an older epoch must drop them.
    foreign : of these times, how often it was for what was not written from here.
    changed_ns : when a change was last noticed, in nanoseconds since the epoch of
        the clock; 0 if never.
    not_before : chunks checked before this instant (`time.monotonic`) need a check
        of their own.
    """

    def __init__(self, array: Array, recheck: float) -> None:
        self._array = array
        self._recheck = recheck
        self._seen: dict[Index, Generation | None] = {}
        self._checked = time.monotonic()
        self._lock = Lock()
        self.epoch = 0
        self.foreign = 0
        self.changed_ns = 0
        self.not_before = 0.0

    def saw(self, stored: Index, generation: Generation | None) -> bool:
        """A stored object was read in this state (None: it was not there).

        Whether it was in another one before, so that what was read then is old.
        """
        return bool(self.saw_all([(stored, generation)]))

    def saw_all(self, seen: Iterable[tuple[Index, Generation | None]]) -> list[Index]:
        """As `saw` for each; those that were in another state before."""
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
        """Whether `saw` would make anything of the states of any of these objects.

        Where it would not, `check` relies on nothing that was read.
        """
        with self._lock:
            known = self._seen
            return len(known) <= _MOST_CHECKED or any(index in known for index in stored)

    def wrote(self, stored: Index, generation: Generation | None) -> None:
        """A stored object was brought into this state from here."""
        with self._lock:
            if stored in self._seen or len(self._seen) <= _MOST_CHECKED:
                self._seen[stored] = generation
            self._note_change()

    def touched(self) -> None:
        """The data have changed here and are not stored yet."""
        self.changed_ns = time.time_ns()

    def due(self) -> bool:
        """Whether `check` would ask the store."""
        return time.monotonic() - self._checked >= self._recheck

    def expire(self) -> None:
        """Rely on nothing that was seen so far. Blocks no longer than a lock."""
        now = time.monotonic()
        self._array.forget()
        with self._lock:
            self._checked = now
            self._seen.clear()
            self.not_before = now
            self.foreign += 1
            self.epoch += 1

    def check(self) -> list[Index]:
        """Bring `epoch` up to date; the stored objects found changed. May block."""
        now = time.monotonic()
        with self._lock:
            if now - self._checked < self._recheck:
                return []
            self._checked = now
            seen = dict(self._seen)
        if len(seen) > _MOST_CHECKED or not self._array.store.cheap_stat:
            # Asking for each would take too long: chunks are asked about one by one as
            # they are used, and what was handed out is not vouched for.
            self.expire()
            return []
        changed = [stored for stored, state in seen.items() if self._state(stored) != state]
        if changed:
            self._array.forget(changed)
            with self._lock:
                for stored in changed:
                    self._seen.pop(stored, None)
                self.foreign += 1
                self._note_change()
        return changed

    def _state(self, stored: Index) -> Generation | None:
        try:
            info = self._array.stored_info(stored)
        except StoreError:
            return ("unknown", time.monotonic())
        return None if info is None else info.generation

    def _note_change(self) -> None:
        self.epoch += 1
        self.changed_ns = time.time_ns()
