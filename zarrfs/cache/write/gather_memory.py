"""Memory in which sequential writes are gathered: of the budget for changes, or a staging file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.scratch_file import ScratchBuffers

_T = TypeVar("_T")


class Buffer(NamedTuple):
    """Memory for gathered changes, which comes back by itself; see `Arena`.

    marks : memory for their marks, all zero, in a staging file; None: there is none.
    in_file : whether ``memory`` is that of a staging file, too.
    """

    memory: NDArray[np.uint8]
    marks: NDArray[np.uint8] | None = None
    in_file: bool = False


class MakeRoom(Protocol):
    """Stores changes until ``take``, which waits for the given number of seconds, succeeds.

    scatter : whether other files may lose what they have gathered.

    Returns False if only objects that are new in part are left to store. Raises ZarrfsError if
    nothing can be stored.
    """

    def __call__(
        self, take: Callable[[float], bool], *, partly: bool, scatter: bool = True
    ) -> bool: ...


class GatherMemory:
    """Lends memory for gathered changes. Thread-safe.

    staging : buffers in files.
    """

    def __init__(self, budget: MemoryBudget, spill: str | None, make_room: MakeRoom) -> None:
        """``spill`` : directory for staging files; None: there are none."""
        self.staging = ScratchBuffers(spill)
        self._budget = budget
        self._make_room = make_room
        # No reader waits for these buffers to be filled.
        self._arena = Arena(budget, whole=True)

    @property
    def kept(self) -> int:
        """Bytes of buffers that are kept for later; see `Arena.kept`."""
        return self._arena.kept

    def back(self, memory: NDArray[np.uint8]) -> bool:
        """Prepare lent memory for being filled; see `Arena.back`. Blocks."""
        return self._arena.back(memory)

    def lend(self, size: int, beside: int) -> Buffer | None:
        """A buffer of ``size`` bytes, and ``beside`` more reserved. None: there is no room."""
        memory = self._arena.lend(size, extra=beside)
        return None if memory is None else Buffer(memory)

    def lend_for_whole(self, size: int, beside: int) -> Buffer | None:
        """As `lend`, storing older changes to make room; see `MakeRoom`. Blocks."""
        if size + beside > self._budget.total:
            return None
        return self._once(partial(self.lend, size, beside))

    def stage(self, size: int, marks: int, beside: int) -> Buffer | None:
        """As `lend_for_whole`, in a staging file if memory for changes has no room. Blocks.

        marks : bytes, all zero, in a staging file in any case. They are used for chunks that are
            new in part; mostly none of them is touched.
        """
        return self._stage_in_memory(size, marks, beside) or self._stage_in_file(
            size, marks, beside
        )

    def _stage_in_memory(self, size: int, marks: int, beside: int) -> Buffer | None:
        """Other files keep what they have gathered: stored in part, it would be stored again."""
        if size + beside > self._budget.total:
            return None
        lent = self._once(self._with_place(partial(self.lend, size, beside)), scatter=False)
        made = None if lent is None else self._make(marks, beside)
        return None if lent is None or made is None else lent._replace(marks=made)

    def _stage_in_file(self, size: int, marks: int, beside: int) -> Buffer | None:
        if beside > self._budget.total or size + marks > self.staging.largest:
            return None
        reserve = partial(self._budget.try_reserve, beside)
        if not self._once(self._with_place(lambda: reserve() or None)):
            return None
        made = self._make(size + marks, beside)
        return None if made is None else Buffer(made[:size], made[size:], in_file=True)

    def _make(self, size: int, beside: int) -> NDArray[np.uint8] | None:
        """Make the staging file whose place is reserved, or give up what is reserved with it."""
        made = self.staging.make(size)
        if made is None:
            self._budget.release(beside)
        return made

    def _with_place(self, reserve: Callable[[], _T | None]) -> Callable[[], _T | None]:
        """``reserve``, which succeeds only if one more staging file may exist."""

        def both() -> _T | None:
            if not self.staging.reserve():
                return None
            if (reserved := reserve()) is None:
                self.staging.release()
            return reserved

        return both

    def _once(self, reserve: Callable[[], _T | None], *, scatter: bool = True) -> _T | None:
        """The result of ``reserve`` once there is room; None if none can be made."""
        found: list[_T] = []

        def take() -> bool:
            if (reserved := reserve()) is not None:
                found.append(reserved)
            return reserved is not None

        attempt = partial(self._budget.attempt, take)
        return found[0] if self._make_room(attempt, partly=False, scatter=scatter) else None
