"""The changes of one tile at an instant, as they are read, stored or kept in the journal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.tiles import Slices, TileForm
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.copying import plain_type

Bytes = NDArray[np.uint8]
Bits = NDArray[np.bool_]


class Patch(NamedTuple):
    """New elements of a tile.

    where : slices of the tile, inside the array.
    values : in memory of its own, of the type ``view``, whose item size is that of the elements.
    """

    where: Slices
    values: Chunk
    view: np.dtype[Any]


@dataclass(slots=True, eq=False, repr=False)
class TileCopy:
    """New elements of one tile. A snapshot that `TileChanges` makes of itself never changes.

    chunk : memory of the tile; None as long as there are patches. Elements that are not new are
        undefined.
    marks : which elements of ``chunk`` are new, undefined beyond the array; None: none or all.
    parts : by place in the tile, new bytes of elements that are not marked, and which bytes these
        are. A tile with patches has no parts.
    whole : whether every element inside the array is new.
    version : grows with every change.
    since : when the oldest of the changes was made (`time.monotonic`).
    """

    form: TileForm
    chunk: Chunk | None
    marks: Bits | None
    patches: list[Patch]
    parts: dict[Index, tuple[Bytes, Bits]]
    whole: bool
    version: int
    since: float

    @property
    def marked(self) -> Bits:
        """Which elements are new; undefined beyond the array."""
        if self.marks is not None:
            return self.marks
        marked = np.full(self.form.shape, self.whole)
        for patch in self.patches:
            marked[patch.where] = True
        return marked

    def units(self) -> tuple[Chunk, Bits]:
        """The units of all elements, and which of them are new; see `Change` of the journal."""
        form, size = self.form, self.form.dtype.itemsize
        chunk = self.chunk
        if chunk is None:
            zeros = np.zeros(form.shape, form.dtype)
            chunk = patched(zeros, tuple(map(slice, form.shape)), self.patches)
        # Elements beyond the array now may lie inside it when a later mount reads the entry.
        inside = tuple(map(slice, form.valid))
        new = np.zeros(form.shape, bool)
        new[inside] = self.marked[inside]
        units = chunk[..., np.newaxis]
        if not self.parts:
            return units.view(f"V{size}"), new[..., np.newaxis]
        units, new = units.view("V1").copy(), np.repeat(new[..., np.newaxis], size, axis=-1)
        for place, (value, known) in self.parts.items():
            units[place] = value.view("V1")
            new[place] = known
        return units, new

    def places(self) -> Iterator[tuple[Index, bool]]:
        """The read chunks that have changes, and whether every element of them is new."""
        form = self.form
        counts = tuple([-(-n // c) for n, c in zip(form.valid, form.chunk, strict=True)])
        if math.prod(form.counts) == 1:
            yield (0,) * len(counts), self.whole
            return
        if self.whole:
            for place in product(*map(range, counts)):
                yield place, True
            return
        inside = tuple(map(slice, form.valid))
        beyond = np.ones(form.shape, bool)
        beyond[inside] = False
        marked = self.marked
        new: Bits = np.logical_or.reduce(_by_chunk(form, marked & ~beyond), axis=-1)
        every: Bits = np.logical_and.reduce(_by_chunk(form, marked | beyond), axis=-1)
        for at in self.parts:
            new[form.chunk_of(at)] = True
        for row in np.argwhere(new).tolist():
            yield tuple(row), bool(every[tuple(row)])

    def part(self, place: Index) -> Chunk:
        """A read chunk that is new as a whole."""
        if self.chunk is None:
            nothing = np.zeros(self.form.chunk, self.form.dtype)
            return patched(nothing, self.form.part(place), self.patches)
        return cut(self.chunk, self.form.part(place))

    def merged(self, place: Index, base: Chunk) -> Chunk:
        """A read chunk whose stored elements are ``base``, with the changes.

        It is in memory of its own, unless every element is new.
        """
        if self.whole:
            return self.part(place)
        part = self.form.part(place)
        if self.chunk is None:
            return patched(base, part, self.patches)
        chunk = np.array(base, order="C")
        copy_marked(chunk, cut(self.chunk, part), self.marked[part])
        for at, (value, known) in self.parts.items():
            if within(at, part):
                inner = tuple([i - s.start for i, s in zip(at, part, strict=True)])
                element_bytes(chunk, inner)[known] = value[known]
        return chunk


def patched(base: Chunk, part: Slices, patches: Sequence[Patch]) -> Chunk:
    """A copy of ``base``, the part ``part`` of a tile, with patches of the tile applied."""
    chunk = np.array(base, order="C")
    for where, values, view in patches:
        if (both := common(part, where)) is not None:
            target, source = both
            chunk.view(view)[target] = values[source]
    return chunk


def common(one: Slices, other: Slices) -> tuple[Slices, Slices] | None:
    """The overlap of two parts of a tile, as slices of each; None: they have none."""
    in_one, in_other = [], []
    for s, o in zip(one, other, strict=True):
        first = max(s.start or 0, o.start or 0)
        last = min(s.stop, o.stop)
        if first >= last:
            return None
        in_one.append(slice(first - (s.start or 0), last - (s.start or 0)))
        in_other.append(slice(first - (o.start or 0), last - (o.start or 0)))
    return tuple(in_one), tuple(in_other)


def _by_chunk(form: TileForm, marked: Bits) -> Bits:
    """Marks with one axis per axis of the tile, and a last axis for the elements of a chunk."""
    rank = len(form.shape)
    split = [n for pair in zip(form.counts, form.chunk, strict=True) for n in pair]
    order = (*range(0, 2 * rank, 2), *range(1, 2 * rank, 2))
    by_chunk: Bits = marked.reshape(split).transpose(order).reshape(*form.counts, -1)
    return by_chunk


def element_bytes(memory: Chunk, place: Index) -> Bytes:
    """The bytes of one element of contiguous memory."""
    number = int(np.ravel_multi_index(place, memory.shape)) if place else 0
    size = memory.dtype.itemsize
    plain: Bytes = memory.reshape(-1).view(np.uint8)
    return plain[number * size : (number + 1) * size]


def within(place: Index, where: Slices) -> bool:
    return all((s.start or 0) <= i < s.stop for i, s in zip(place, where, strict=True))


def cut(memory: Chunk, where: Slices) -> Chunk:
    """A view of a part of a tile. Without axes, too, where `memory[()]` would be an element, of
    which NumPy cuts the zeros at the end of texts."""
    index: Any = (*where, ...)
    view: Chunk = memory[index]
    return view


def copy_marked(target: Chunk, source: Chunk, where: Bits) -> None:
    """Copy elements bit for bit, which numpy does not promise for some types."""
    plain = plain_type(target.dtype.itemsize)
    np.copyto(target.view(plain), source.view(plain), where=where)
