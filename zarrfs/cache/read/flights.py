"""What is being loaded: whoever asks for the same thing meanwhile waits for it."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Waiter = TypeVar("Waiter")


class _Flight(Generic[Waiter]):
    """
    keep : whether somebody wants what comes to stay in memory.
    again : whether what is on its way may be old by now.
    """

    __slots__ = ("again", "keep", "waiters")

    def __init__(self) -> None:
        self.keep = False
        self.again = False
        self.waiters: list[Waiter] = []


class Flights(Generic[Key, Waiter]):
    """The loads of one array or file, each of which is made once however many ask.

    All of it is called with the lock of its owner held.
    """

    def __init__(self) -> None:
        self._flights: dict[Key, _Flight[Waiter]] = {}

    def join(self, key: Key, waiter: Waiter | None, *, keep: bool = True) -> bool:
        """Wait for a load; True where nobody makes it yet: then the caller must.

        waiter : None: nobody waits.
        """
        flight = self._flights.get(key)
        if first := flight is None:
            flight = self._flights[key] = _Flight()
        assert flight is not None
        flight.keep |= keep
        if waiter is not None:
            flight.waiters.append(waiter)
        return first

    def join_any(self, waiter: Waiter) -> bool:
        """Wait for whatever is being loaded; False where nothing is."""
        for flight in self._flights.values():
            flight.waiters.append(waiter)
            return True
        return False

    def __len__(self) -> int:
        return len(self._flights)

    def awaited(self, key: Key) -> bool:
        """Whether somebody waits for a load."""
        return bool(self._flights[key].waiters)

    def kept(self, key: Key) -> bool:
        """Whether what comes is to stay in memory."""
        return self._flights[key].keep

    def end(self, key: Key) -> list[Waiter] | None:
        """A load is over: who waits; None: it must be made once more."""
        flight = self._flights[key]
        if flight.again:
            flight.again = False
            return None
        del self._flights[key]
        return flight.waiters

    def repeat(self, keys: Collection[Key] | None = None) -> None:
        """What is on its way may be old: have it loaded once more. None: all of it."""
        for key in self._flights if keys is None else keys:
            if (flight := self._flights.get(key)) is not None:
                flight.again = True

    def keys(self) -> list[Key]:
        return list(self._flights)
