"""Memory in which sequential writes are gathered: of the budget for changes, or a staging file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.memory.arena import Arena
from zarrfs.memory.budget import MemoryBudget
from zarrfs.memory.scratch_file import ScratchBuffers


class Buffer(NamedTuple):
    """Memory for gathered changes, which comes back by itself; see `Arena`.

    marks : memory for their marks, all zero, in a staging file; None: there is none.
    in_file : whether ``memory`` is that of a staging file, too.
    """

    memory: NDArray[np.uint8]
    marks: NDArray[np.uint8] | None = None
    in_file: bool = False


MakeRoom = Callable[[Callable[[float], Buffer | None], bool], Buffer | None]
"""Stores changes until a function, which waits for the given number of seconds, gets a buffer.

The second argument says whether other files may lose what they have gathered. Returns None if only
objects that are new in part are left to store. Raises ZarrfsError if nothing can be stored.
"""


class GatherMemory:
    """Lends memory for gathered changes. Thread-safe.

    arena : buffers in memory, charged to the budget.
    staging : buffers in files.
    """

    def __init__(self, budget: MemoryBudget, spill: str | None, make_room: MakeRoom) -> None:
        """``spill`` : directory for staging files; None: there are none."""
        self.staging = ScratchBuffers(spill)
        self._budget = budget
        self._make_room = make_room
        # No reader waits for these buffers to be filled.
        self.arena = Arena(budget, whole=True)

    def lend(self, size: int, beside: int) -> Buffer | None:
        """A buffer of ``size`` bytes, and ``beside`` more reserved. None: there is no room."""
        memory = self.arena.lend(size, extra=beside)
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
        for in_file in (False, True):
            memory, staged = (0, size + marks) if in_file else (size, marks)
            if memory + beside > self._budget.total or staged > self.staging.largest:
                continue
            # Other files keep what they have gathered, unless this takes no memory from them:
            # stored in part, it would be stored again.
            lent = self._once(partial(self._lend_with_place, memory, beside), scatter=in_file)
            if lent is None:
                continue
            if (made := self.staging.make(staged)) is None:
                self._budget.release(beside)
            elif in_file:
                return Buffer(made[:size], made[size:], in_file=True)
            else:
                return lent._replace(marks=made)
        return None

    def _lend_with_place(self, size: int, beside: int) -> Buffer | None:
        """As `lend`, if one more staging file may exist; its place is reserved."""
        if not self.staging.reserve():
            return None
        buffer: Buffer | None = Buffer(np.empty(0, np.uint8))
        if size:
            buffer = self.lend(size, beside)
        elif not self._budget.try_reserve(beside):
            buffer = None
        if buffer is None:
            self.staging.release()
        return buffer

    def _once(self, lend: Callable[[], Buffer | None], *, scatter: bool = True) -> Buffer | None:
        """The result of ``lend`` once there is room; None if none can be made."""
        return self._make_room(partial(self._budget.attempt, lend), scatter)
