"""A chunk that was written to and is not stored yet."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Chunk

Slices = tuple[slice, ...]
Bytes = NDArray[np.uint8]
Bits = NDArray[np.bool_]

# Parts of elements are kept one by one, each for some hundred bytes of memory. So many
# there may be beside one for every so many elements.
_PARTS = 64
_ELEMENTS_A_PART = 64


class DirtyChunk:
    """New elements of one chunk, and which they are.

    Programs write in blocks that need not end where an element does. The next block mostly
    brings the rest; until then the new bytes are a *part*, and the other bytes are taken
    from the stored chunk when it is asked for or stored.

    chunk : of the full chunk shape. Elements that are not marked hold nothing until
        `complete_with` has been called; from then on it may be read without the lock.
    version : grows with every change.
    since : when the oldest of the changes was made (`time.monotonic`).
    parts : by place in the chunk, new bytes of elements that are not marked, and which
        they are.
    whole : whether every element inside the array is new.
    charged : bytes of memory that somebody has reserved for it.

    Not safe for threads: its owner has the lock.
    """

    __slots__ = (
        "_based", "_inside", "_later", "_lent", "_marked", "_missing", "_owns", "_storing",
        "charged", "chunk", "parts", "since", "version", "whole",
    )  # fmt: skip

    def __init__(
        self,
        shape: Shape,
        dtype: np.dtype[Any],
        valid: Shape,
        since: float | None = None,
        memory: Chunk | None = None,
    ) -> None:
        """
        valid : shape of the part that lies inside the array.
        since : None: now.
        memory : of the chunk, for it alone, which somebody else has reserved; None: its own.
        """
        self._owns = memory is None
        self.chunk: Chunk = np.empty(shape, dtype) if memory is None else memory.view(dtype)
        self.version = 0
        self.since = time.monotonic() if since is None else since
        self.parts: dict[Index, tuple[Bytes, Bits]] = {}
        self._inside = tuple([slice(n) for n in valid])
        # None: none of the elements is new, or all of them are.
        self._marked: Bits | None = None
        self._missing = math.prod(valid)
        self.whole = False
        self.charged = self.taken
        self._based = False
        # Whether the memory of `chunk` is also that of a copy, so that nothing may change there.
        self._lent = False
        self._storing = False
        # Elements that have changed since `begin_store`; None: none has.
        self._later: Bits | None = None

    @staticmethod
    def cost(shape: Shape, dtype: np.dtype[Any]) -> int:
        """Bytes of memory that such a chunk takes."""
        return math.prod(shape) * (dtype.itemsize + 1)

    @property
    def taken(self) -> int:
        """Bytes of memory that it takes, other than what somebody else has reserved."""
        marks = 0 if self.whole else self.chunk.size
        return marks + self.chunk.nbytes if self._owns else marks

    @property
    def readable(self) -> bool:
        """Whether every element inside the array has its value, new or old."""
        return self._based or self.whole

    @property
    def marked(self) -> Bits:
        """Which elements are new; beyond the array it means nothing."""
        return np.full(self.chunk.shape, self.whole) if self._marked is None else self._marked

    def write(self, where: Slices, values: Chunk, view: np.dtype[Any]) -> None:
        """Set elements; ``values`` are of ``view`` in some byte order."""
        self._begin_change(where)
        self.chunk.view(view)[where] = values
        if self.whole:
            return
        if all(
            not s.start and s.stop >= inside.stop
            for s, inside in zip(where, self._inside, strict=True)
        ):
            self._set_whole()
            return
        for place in [place for place in self.parts if _within(place, where)]:
            del self.parts[place]
        if self._marked is None:
            self._marked = np.zeros(self.chunk.shape, bool)
        marked = self._marked[where]
        self._missing -= marked.size - int(np.count_nonzero(marked))
        self._marked[where] = True
        if self._missing == 0:
            self._set_whole()

    def write_part(self, place: Index, value: Bytes, known: Bits) -> bool:
        """Set the ``known`` bytes of one element; False if there are too many parts."""
        if self.whole or (self._marked is not None and self._marked[place]):
            self._begin_change(place)
            self._element(place)[known] = value[known]
            return True
        part = self.parts.get(place)
        if part is None:
            if len(self.parts) >= _PARTS + self.chunk.size // _ELEMENTS_A_PART:
                return False
            part = self.parts[place] = np.zeros(len(value), np.uint8), np.zeros(len(value), bool)
        part[0][known] = value[known]
        part[1][known] = True
        if part[1].all():
            where = tuple(slice(i, i + 1) for i in place)
            whole = np.frombuffer(part[0].tobytes(), f"V{len(value)}")
            self.write(where, whole.reshape((1,) * len(place)), whole.dtype)
            return True
        self._begin_change(None)
        if self._based:
            self._element(place)[known] = value[known]
        return True

    def adopt(self, chunk: Chunk, marked: Bits) -> None:
        """Take the ``marked`` elements of a chunk whose elements have as many bytes."""
        inside = self._inside
        where = marked[inside]
        self._begin_change(None)
        np.copyto(self.chunk.view(chunk.dtype)[inside], chunk[inside], where=where)
        if self._storing:
            if self._later is None:
                self._later = np.zeros(self.chunk.shape, bool)
            self._later[inside] |= where
        if not self.whole:
            self._set_marks(marked if self._marked is None else self._marked | marked)

    def complete_with(self, base: Chunk) -> None:
        """Take what is not new from the stored chunk, once."""
        if self.readable:
            return
        self._own_memory()
        _copy(self.chunk, base, ~self.marked)
        self._apply_parts()
        self._based = True

    def completed_with(self, base: Chunk) -> Chunk:
        """The chunk, once it is `complete_with`."""
        self.complete_with(base)
        return self.chunk

    def copy(self) -> DirtyChunk:
        """The same, untouched by later changes to this one."""
        twin = DirtyChunk.__new__(DirtyChunk)
        # What is whole mostly does not change any more until it is stored. Else the copy is
        # completed in its own memory.
        twin.chunk = self.chunk if self.whole else self.chunk.copy()
        self._lent |= self.whole
        twin._lent = self.whole
        twin._owns = not self.whole or self._owns
        twin.charged = 0
        twin.parts = {at: (value.copy(), known.copy()) for at, (value, known) in self.parts.items()}
        twin.whole = self.whole
        twin._marked = None if self._marked is None else self._marked.copy()
        twin._missing = self._missing
        twin._inside = self._inside
        twin._based = False
        twin._storing = False
        twin._later = None
        twin.version = self.version
        twin.since = self.since
        return twin

    def begin_store(self) -> DirtyChunk:
        """A copy to be stored; from now on it is known what changes later."""
        self.store_begun()
        return self.copy()

    def store_begun(self) -> None:
        """A copy as it is now is being stored."""
        self._storing = True
        self._later = None

    def stored(self, copy: DirtyChunk) -> bool:
        """``copy``, complete, has been stored: whether nothing has changed since it was made.

        Otherwise only what has changed since is new any more. What was new before may
        be older now than what others have stored.
        """
        if self.version == copy.version:
            return True
        for place, (value, known) in copy.parts.items():
            now = self.parts.get(place)
            if now is not None and bool((now[1] == known).all() and (now[0] == value).all()):
                del self.parts[place]
        later = np.zeros(self.chunk.shape, bool) if self._later is None else self._later
        self.end_store()
        self._set_marks(later)
        # Somebody may be reading the old memory, in which nothing may go back to what it was.
        chunk, self.chunk = self.chunk, copy.chunk
        self._lent, self._owns = copy._lent, copy._owns
        self._own_memory()
        _copy(self.chunk, chunk, later)
        self._apply_parts()
        self._based = True
        self.since = time.monotonic()
        return False

    def end_store(self) -> None:
        """What changes from now on need not be told from what has."""
        self._storing = False
        self._later = None

    def _begin_change(self, where: Slices | Index | None) -> None:
        """The elements ``where`` are about to change; None: that will be told otherwise."""
        self._own_memory()
        self.version += 1
        if self._storing and where is not None:
            if self._later is None:
                self._later = np.zeros(self.chunk.shape, bool)
            self._later[where] = True

    def _own_memory(self) -> None:
        if self._lent:
            self.chunk = self.chunk.copy()
            self._lent, self._owns = False, True

    def _set_whole(self) -> None:
        self.whole = True
        self._missing = 0
        self._marked = None
        self.parts.clear()

    def _apply_parts(self) -> None:
        for place, (value, known) in self.parts.items():
            self._element(place)[known] = value[known]

    def _set_marks(self, marked: Bits) -> None:
        for place in [place for place in self.parts if marked[place]]:
            del self.parts[place]
        inside = marked[self._inside]
        self._missing = inside.size - int(np.count_nonzero(inside))
        self.whole = self._missing == 0
        self._marked = None if self.whole else marked

    def _element(self, place: Index) -> Bytes:
        """The bytes of one element, in the memory of the chunk."""
        number = int(np.ravel_multi_index(place, self.chunk.shape)) if place else 0
        size = self.chunk.dtype.itemsize
        memory: Bytes = self.chunk.reshape(-1).view(np.uint8)
        return memory[number * size : (number + 1) * size]


def _within(place: Index, where: Slices) -> bool:
    return all((s.start or 0) <= i < s.stop for i, s in zip(place, where, strict=True))


def _copy(target: Chunk, source: Chunk, where: Bits) -> None:
    """Copy elements bit for bit, which is more than numpy promises for some types."""
    size = target.dtype.itemsize
    plain = np.dtype(f"u{size}" if size in (1, 2, 4, 8) else f"V{size}")
    np.copyto(target.view(plain), source.view(plain), where=where)
