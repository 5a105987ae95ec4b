"""The changes of one tile that are not stored yet.

A tile keeps its first small changes one by one, as patches. Otherwise scattered small writes would
take the memory of a whole chunk for a few bytes each. When the changes become many, the tile gets
memory of its own: new elements, and a mark for each element that is new.

Programs write in blocks that need not end at the end of an element. The next block mostly brings
the rest of the element. Until then the new bytes are a *part* of an element.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.tile_copy import (
    Bits,
    Bytes,
    Patch,
    TileCopy,
    common,
    copy_marked,
    cut,
    element_bytes,
    within,
)
from zarrfs.cache.write.tiles import Slices, TileForm
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.locks import Rank, ranked_lock

# Bytes that a tile with changes takes in addition to its elements and their marks, measured; this
# includes one part at each end of a write, as there mostly are.
OVERHEAD = 1024
_PARTS_PAID = 2
# Bytes that a patch, and a part, take in addition to their elements.
_PATCH = 768
_PART = 512
# A tile with at least this many patches, or this share (1 / n) of its elements in patches, gets
# memory of its own.
_MOST_PATCHES = 64
_LARGEST_SHARE = 8
# A tile may have this many parts, and one more for every so many elements.
_PARTS = 64
_ELEMENTS_A_PART = 64


class TileChanges(TileCopy):
    """New elements of one tile, and marks that say which elements are new.

    lock : held while elements are copied in or out. The caller of every method holds it, unless the
        method says otherwise. The event loop never waits for it.
    charged : bytes of memory that are reserved for it.
    foreign : in methods, the `Freshness.foreign` that stored elements are from, or must be from.
    gone : whether it is stored, and its object has forgotten it: new changes need a new instance.
    """

    __slots__ = (
        "_based", "_behind", "_elements", "_inside", "_later", "_lent", "_missing", "_owns",
        "_owns_marks", "_storing", "charged", "gone", "lock",
    )  # fmt: skip

    def __init__(
        self, form: TileForm, since: float | None = None, memory: Chunk | None = None
    ) -> None:
        """
        since : None: now.
        memory : of all new elements of the tile, charged; see `write_boxes`. None: there are none.
        """
        since = time.monotonic() if since is None else since
        super().__init__(form, None, None, [], {}, whole=False, version=0, since=since)
        self.lock = ranked_lock(Rank.TILE)
        self._inside = tuple(map(slice, form.valid))
        self.charged = 0
        self.gone = False
        self._elements = 0
        self._owns = self._owns_marks = True
        self._missing = math.prod(form.valid)
        # For each read chunk, the `Freshness.foreign` its unmarked elements are from; -1: none.
        self._based: NDArray[np.int64] | None = None
        # Whether a copy that is being stored shares the memory: marked elements must not change.
        self._lent = False
        # How many patches are being stored; None: no thread stores the tile.
        self._storing: int | None = None
        # Elements that have changed since `begin_store`; None: none.
        self._later: Bits | None = None
        # Bytes of memory that only the thread that stores the tile reads now.
        self._behind = 0
        if memory is not None:
            self.chunk, self._owns = memory.view(form.dtype), False
            self.whole, self._missing, self.version = True, 0, 1
            self.charged = OVERHEAD

    @staticmethod
    def cost(elements: int, dtype: np.dtype[Any]) -> int:
        """Bytes of memory that a tile with so many elements takes at most."""
        return elements * (dtype.itemsize + 1) + OVERHEAD

    @property
    def taken(self) -> int:
        """Bytes of memory that the tile takes, without memory that another owner has reserved."""
        size = OVERHEAD + max(0, len(self.parts) - _PARTS_PAID) * _PART
        if self.chunk is None:
            return size + sum(patch.values.nbytes + _PATCH for patch in self.patches)
        size += self._behind
        if not self.whole and self._owns_marks:
            size += self.chunk.size
        return size + self.chunk.nbytes if self._owns else size

    @property
    def nbytes(self) -> int:
        """Bytes of new elements, or of the memory that they are in. Needs no lock."""
        if (chunk := self.chunk) is not None:
            return chunk.nbytes
        return sum(patch.values.nbytes for patch in list(self.patches))

    def copies_to_change(self) -> int:
        """Bytes that the next change must copy first, because the tile is being stored."""
        return self.chunk.nbytes if self._lent and self.chunk is not None else 0

    def room_for(self, values: Chunk | None) -> int:
        """Bytes of memory that a change takes in addition to the charged bytes.

        values : new elements; None: part of one element.
        """
        if self.chunk is not None:
            more = values is None and not self.whole and len(self.parts) >= _PARTS_PAID
            return _PART if more else 0
        if values is not None and self._stays_patches(values.size, values.nbytes):
            return (0 if self.patches else OVERHEAD) + values.nbytes + _PATCH
        return self.cost(self.form.elements, self.form.dtype) - self.charged

    # --- changes ----------------------------------------------------------------

    def write(self, where: Slices, values: Chunk, view: np.dtype[Any]) -> None:
        """Set elements; ``values`` are of the type ``view`` in some byte order."""
        if self.chunk is None and self._stays_patches(values.size, values.nbytes):
            self.patches.append(Patch(where, values.astype(view), view))
            self._elements += values.size
            self.version += 1
            return
        self._have_memory()
        self._write(where, values, view, there=False)

    def write_boxes(
        self,
        boxes: Sequence[tuple[Slices, Chunk]],
        view: np.dtype[Any],
        memory: Chunk | None = None,
        marks: Bits | None = None,
    ) -> None:
        """Set the elements of several boxes, as `write` does for one.

        memory : of the whole tile, with the values in their place already. The tile takes it as its
            own if it has none yet. Another owner has reserved this memory.
        marks : of the whole tile, all False, to be used with ``memory``; None: there are none.
        """
        there = self.chunk is None and memory is not None
        if there:
            self._have_memory(memory, marks, [where for where, _ in boxes])
        for where, values in boxes:
            if there:
                self._write(where, values, view, there=True)
            else:
                self.write(where, values, view)

    def write_part(self, place: Index, value: Bytes, known: Bits) -> bool:
        """Set the ``known`` bytes of one element; False if there are too many parts."""
        self._have_memory()
        if self.whole or (self.marks is not None and self.marks[place]):
            self._begin_change(place)
            self._element(place)[known] = value[known]
            return True
        part = self.parts.get(place)
        if part is None:
            if len(self.parts) >= _PARTS + self.form.elements // _ELEMENTS_A_PART:
                return False
            part = self.parts[place] = np.zeros(len(value), np.uint8), np.zeros(len(value), bool)
        part[0][known] = value[known]
        part[1][known] = True
        if part[1].all():
            where = tuple([slice(i, i + 1) for i in place])
            whole = np.frombuffer(part[0].tobytes(), f"V{len(value)}")
            self._write(where, whole.reshape((1,) * len(place)), whole.dtype, there=False)
            return True
        self._begin_change(None)
        if self._based is not None and self._based[self.form.chunk_of(place)] >= 0:
            self._element(place)[known] = value[known]
        return True

    def adopt(self, chunk: Chunk, marked: Bits) -> None:
        """Take the ``marked`` elements of ``chunk``, whose element size is that of the tile."""
        self._have_memory()
        inside: Any = (*self._inside, ...)  # a view without axes, too
        where = marked[inside]
        self._begin_change(inside, where)
        np.copyto(self._memory.view(chunk.dtype)[inside], chunk[inside], where=where)
        if not self.whole:
            self._set_marks(marked.copy() if self.marks is None else self.marks | marked)

    # --- reading ----------------------------------------------------------------

    def now(self, place: Index, foreign: int) -> Chunk | None:
        """A read chunk, if every element inside the array has its new or stored value, else None.

        None also while another thread has the lock, which this takes without waiting. Readers may
        read the chunk without the lock; they may or may not see changes made meanwhile.
        """
        if not self.lock.acquire(blocking=False):
            return None
        try:
            based = self._based is not None and self._based[place] == foreign
            return self.part(place) if (self.whole or based) and not self.gone else None
        finally:
            self.lock.release()

    def over(self, place: Index, base: Chunk, foreign: int) -> Chunk:
        """As `merged`; the elements that are not new get their stored values in this memory.

        foreign : the value of `Freshness.foreign` before ``base`` was asked for; -1: a check has
            begun since, so ``base`` is not kept.

        Without that, each read of a chunk with changes would copy all of it: a program that
        changes an array in chunks of 16 MiB in place took twice the processor time.
        """
        based = np.full(self.form.counts, -1) if self._based is None else self._based
        if self.whole or self.chunk is None or foreign < max(0, based[place]):
            return self.merged(place, base)
        self._based, part = based, self.form.part(place)
        # Others may read the chunk already if it has its stored elements.
        if self._based[place] != foreign:
            copy_marked(cut(self.chunk, part), base, ~self.marked[part])
            for at, (value, known) in self.parts.items():
                if within(at, part):
                    self._element(at)[known] = value[known]
            self._based[place] = foreign
        return cut(self.chunk, part)

    # --- storing ----------------------------------------------------------------

    def copy(self) -> TileCopy:
        """A copy of the current changes, unaffected by later ones. No element is copied."""
        self._lent |= self.chunk is not None
        return TileCopy(
            self.form,
            self.chunk,
            self.marks,
            list(self.patches),
            {at: (value.copy(), known.copy()) for at, (value, known) in self.parts.items()},
            self.whole,
            self.version,
            self.since,
        )

    def begin_store(self) -> TileCopy:
        """A copy to be stored; from now on later changes are recorded."""
        self._storing = len(self.patches)
        return self.copy()

    def stored(self, copy: TileCopy, foreign: int) -> bool:
        """``copy`` has been stored; returns whether the tile has not changed since the copy.

        If it has, only the later changes stay new. The stored elements may be newer than the
        others, because other writers may have changed them.
        """
        if self.version == copy.version:
            return True
        self.since = time.monotonic()
        if self.chunk is None:
            for patch in self.patches[: self._storing or 0]:
                self._elements -= patch.values.size
            del self.patches[: self._storing or 0]
            self._storing = None
            return False
        for place, (value, known) in copy.parts.items():
            now = self.parts.get(place)
            if now is not None and bool((now[1] == known).all() and (now[0] == value).all()):
                del self.parts[place]
        later = np.zeros(self.form.shape, bool) if self._later is None else self._later
        self.end_store()
        # Elements that were not new have been merged with stored ones, but not in this memory.
        self._based = np.full(self.form.counts, foreign) if copy.whole else None
        self._set_marks(later)
        return False

    def end_store(self) -> None:
        """From now on changes need not be recorded separately.

        A store operation that was given up may still read the memory, so it stays lent.
        """
        self._storing = None
        self._later = None
        self._behind = 0

    # ------------------------------------------------------------------------------

    @property
    def _memory(self) -> Chunk:
        assert self.chunk is not None
        return self.chunk

    def _stays_patches(self, elements: int, nbytes: int) -> bool:
        """Whether a change can stay a patch. All patches together never make the tile whole."""
        inside = math.prod(self.form.valid)
        if (self._elements + elements) * _LARGEST_SHARE > inside:
            return False
        size = inside * self.form.dtype.itemsize
        if not self.patches:
            return 2 * (nbytes + _PATCH) <= size
        return len(self.patches) < min(_MOST_PATCHES, size // _PATCH)

    def _have_memory(
        self, memory: Chunk | None = None, marks: Bits | None = None, newer: Sequence[Slices] = ()
    ) -> None:
        """Have memory in place of patches; see `write_boxes`.

        newer : the parts of ``memory`` that are set already, later than the patches.
        """
        if self.chunk is not None:
            return
        form = self.form
        self._owns = memory is None
        self.chunk = np.empty(form.shape, form.dtype) if memory is None else memory.view(form.dtype)
        self.marks, self._owns_marks = marks, marks is None
        patches, self.patches = self.patches, []
        storing, self._storing = self._storing, None
        for number, patch in enumerate(patches):
            if number == storing:
                self._storing = 0
            # No larger than the patch: nobody has reserved memory for more marks of the tile.
            older = np.ones(patch.values.shape, bool)
            for where in newer:
                if (both := common(patch.where, where)) is not None:
                    older[both[0]] = False
            copy_marked(self.chunk[patch.where], patch.values, older)
            self._write(*patch, there=True)
        self._storing = None if storing is None else 0

    def _write(self, where: Slices, values: Chunk, view: np.dtype[Any], *, there: bool) -> None:
        self._begin_change(where)
        if not there:
            self._memory.view(view)[where] = values
        if self.whole:
            return
        if self.form.is_whole(where):
            self._set_whole()
            return
        if self.parts:
            for place in [place for place in self.parts if within(place, where)]:
                del self.parts[place]
        if self.marks is None:
            self.marks = np.zeros(self.form.shape, bool)
        marked = self.marks[where]
        self._missing -= marked.size - int(np.count_nonzero(marked))
        self.marks[where] = True
        if self._missing == 0:
            self._set_whole()

    def _begin_change(self, where: Slices | Index | None, which: Bits | bool = True) -> None:
        """The elements ``where`` will change now, or those of them that ``which`` marks.

        where : None: no element becomes new.
        """
        self._own_memory()
        self.version += 1
        if self._storing is not None and where is not None:
            if self._later is None:
                self._later = np.zeros(self.form.shape, bool)
            self._later[where] |= which

    def _own_memory(self) -> None:
        if self._lent and self.chunk is not None:
            if self._storing is not None and self._owns:
                self._behind += self.chunk.nbytes
            self.chunk = self.chunk.copy()
            self.marks = None if self.marks is None else self.marks.copy()
            self._lent, self._owns, self._owns_marks = False, True, True

    def _set_whole(self) -> None:
        self.whole, self._missing, self.marks = True, 0, None
        self.parts.clear()

    def _set_marks(self, marked: Bits) -> None:
        for place in [place for place in self.parts if marked[place]]:
            del self.parts[place]
        inside = marked[self._inside]
        self._missing = inside.size - int(np.count_nonzero(inside))
        self.whole = self._missing == 0
        self.marks, self._owns_marks = (None if self.whole else marked), True

    def _element(self, place: Index) -> Bytes:
        """The bytes of one element, in the memory of the tile."""
        return element_bytes(self._memory, place)
