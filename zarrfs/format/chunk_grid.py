"""Chunk grids, axis by axis.

Every grid that Zarr defines is a product of one partition per axis, so a grid here is a tuple of
axes. An axis gives the origin and the length of each chunk. A chunk that overhangs the array keeps
its full length.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from zarrfs.bounds import shown
from zarrfs.format.unserved import UnservedError, name_and_configuration

Index = tuple[int, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegularAxis:
    """Chunks of equal length ``chunk`` over ``extent`` elements."""

    extent: int
    chunk: int

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.extent // self.chunk)

    @property
    def longest(self) -> int:
        """The length of the longest chunk."""
        return self.chunk

    @property
    def lengths(self) -> frozenset[int]:
        """All lengths that chunks have."""
        return frozenset((self.chunk,))

    def origin(self, chunk: int) -> int:
        """First element of a chunk."""
        return chunk * self.chunk

    def length(self, chunk: int) -> int:
        """Full length of a chunk, overhang included."""
        return self.chunk

    def chunk_of(self, element: int) -> int:
        """The chunk that holds an element."""
        return element // self.chunk

    @property
    def reach(self) -> int | None:
        """The most elements that the axis can have; None: any number."""
        return None

    def resized(self, extent: int) -> RegularAxis:
        """The same chunks over another extent. Raises ValueError beyond `reach`."""
        return RegularAxis(extent, self.chunk)


class RunsAxis:
    """As `RegularAxis`, of runs of chunks: a length, and the number of chunks with that length.

    Together they reach ``extent`` or beyond. Chunks that start at or after ``extent`` hold no
    element of the array and are not counted. Runs are kept as they are, so an axis of many chunks
    takes no memory for each chunk.
    """

    __slots__ = (
        "_chunks",
        "_lengths",
        "_origins",
        "_runs",
        "count",
        "extent",
        "lengths",
        "longest",
    )

    def __init__(self, extent: int, runs: Iterable[tuple[int, int]]) -> None:
        self.extent = extent
        self._runs = tuple(runs)
        self._lengths: list[int] = []
        # The number and the origin of the first chunk of each run.
        self._chunks = [0]
        self._origins = [0]
        for length, repeats in self._runs:
            if length < 1 or repeats < 1:
                raise ValueError("chunk lengths and repeats must be at least 1")
            # A run behind the array needs no origin, but its values are checked nevertheless.
            if (left := extent - self._origins[-1]) > 0:
                kept = min(repeats, -(-left // length))
                self._lengths.append(length)
                self._chunks.append(self._chunks[-1] + kept)
                self._origins.append(self._origins[-1] + kept * length)
        if self._origins[-1] < extent:
            raise ValueError(f"chunk lengths add up to {self._origins[-1]}, less than {extent}")
        self.count = self._chunks[-1]
        # Kept, because each read asks for it, and there may be as many runs as chunks.
        self.lengths = frozenset(self._lengths)
        self.longest = max(self._lengths, default=1)

    def origin(self, chunk: int) -> int:
        run = min(bisect_right(self._chunks, chunk) - 1, len(self._lengths) - 1)
        if run < 0:
            return 0
        return self._origins[run] + (chunk - self._chunks[run]) * self._lengths[run]

    def length(self, chunk: int) -> int:
        return self._lengths[bisect_right(self._chunks, chunk) - 1]

    def chunk_of(self, element: int) -> int:
        run = bisect_right(self._origins, element) - 1
        return self._chunks[run] + (element - self._origins[run]) // self._lengths[run]

    @property
    def reach(self) -> int | None:
        return sum(length * repeats for length, repeats in self._runs)

    def resized(self, extent: int) -> RunsAxis:
        return RunsAxis(extent, self._runs)


GridAxis = RegularAxis | RunsAxis


class ChunkGrid:
    """The product of its axes; a 0-dimensional grid has one chunk, ``()``.

    regular_shape : the chunk shape of a regular grid; None for any other grid.
    counts : number of chunks along each axis.
    """

    __slots__ = ("_extents", "axes", "counts", "regular_shape")

    def __init__(self, axes: Sequence[GridAxis]) -> None:
        self.axes = tuple(axes)
        self._extents = self.shape
        self.counts: Shape = tuple(a.count for a in self.axes)
        regular = tuple(a.chunk for a in self.axes if isinstance(a, RegularAxis))
        self.regular_shape: Shape | None = regular if len(regular) == len(self.axes) else None

    @classmethod
    def regular(cls, shape: Shape, chunk_shape: Shape) -> ChunkGrid:
        """Chunks of ``chunk_shape`` over an array of ``shape``."""
        return cls([RegularAxis(s, c) for s, c in zip(shape, chunk_shape, strict=True)])

    def resized(self, shape: Shape) -> ChunkGrid:
        """The same chunks over an array of another shape. Raises ValueError beyond their reach."""
        axes = zip(self.axes, shape, strict=True)
        return ChunkGrid([axis.resized(extent) for axis, extent in axes])

    @property
    def shape(self) -> Shape:
        """Shape of the array."""
        return tuple(a.extent for a in self.axes)

    @property
    def chunks(self) -> int:
        """Number of chunks; 0 if the array has an axis of no elements."""
        return math.prod(self.counts)

    @property
    def largest_chunk(self) -> Shape:
        """An upper bound for the shape of every chunk."""
        return tuple(a.longest for a in self.axes)

    def contains(self, index: Index) -> bool:
        return len(index) == len(self.axes) and all(
            0 <= i < n for i, n in zip(index, self.counts, strict=True)
        )

    def every_index(self) -> Iterator[Index]:
        """All chunks, in C order."""
        # `product` keeps the numbers along each axis first, even if there is no chunk.
        return product(*map(range, self.counts)) if self.chunks else iter(())

    def chunks_in(self, origin: Index, shape: Shape) -> Iterator[Index]:
        """The chunks that hold elements of a box, some of which lie in the array."""
        return product(*self.ranges_in(origin, shape))

    def ranges_in(self, origin: Index, shape: Shape) -> list[range]:
        """As `chunks_in`, the chunks along each axis."""
        box = zip(self.axes, origin, shape, strict=True)
        return [range(a.chunk_of(o), a.chunk_of(min(o + n, a.extent) - 1) + 1) for a, o, n in box]

    def origin(self, index: Index) -> Index:
        """Array index of a chunk's first element."""
        return tuple(a.origin(i) for a, i in zip(self.axes, index, strict=True))

    def chunk_shape(self, index: Index) -> Shape:
        """Full shape of a chunk, overhang included."""
        if self.regular_shape is not None:
            return self.regular_shape
        return tuple(a.length(i) for a, i in zip(self.axes, index, strict=True))

    def valid_shape(self, index: Index) -> Shape:
        """Shape of the part of a chunk that lies inside the array."""
        if (regular := self.regular_shape) is not None:
            axes = zip(regular, self._extents, index, strict=True)
            return tuple([min(n, extent - i * n) for n, extent, i in axes])
        return tuple(
            [
                min(a.length(i), a.extent - a.origin(i))
                for a, i in zip(self.axes, index, strict=True)
            ]
        )


# Chunk grids by name, made from their configuration in v3 metadata.
# ``regular`` is in the core specification, ``rectilinear`` in zarr-extensions
# (https://github.com/zarr-developers/zarr-extensions/tree/main/chunk-grids/rectilinear).
# ``rectangular`` is the draft that preceded it (https://zarr.dev/zeps/draft/ZEP0003.html).
# ``zarrs.regular_bounded`` is a regular grid whose last chunks end with the array.


def parse_grid(value: Any, shape: Shape) -> ChunkGrid:
    """The grid that metadata give as ``value``, over an array of ``shape``.

    Raises UnservedError for an unknown grid, ValueError for a malformed one.
    """
    name, configuration = name_and_configuration(value, "chunk grid")
    if (make := CHUNK_GRIDS.get(name)) is None:
        raise UnservedError(f"unknown chunk grid {name!r}")
    return make(shape, configuration)


def shape_of(value: Any, least: int = 0) -> Shape:
    """Lengths as in metadata, none of them below ``least``. Raises ValueError."""
    if not isinstance(value, list | tuple) or any(type(n) is not int or n < least for n in value):
        raise ValueError(f"expected a list of integers from {least} up, not {shown(repr(value))}")
    return tuple(value)


def _regular(extent: int, length: Any) -> GridAxis:
    return RegularAxis(extent, _positive(length))


def _bounded(extent: int, length: Any) -> GridAxis:
    whole, rest = divmod(extent, _positive(length))
    return RunsAxis(extent, [(n, times) for n, times in ((length, whole), (rest, 1)) if n * times])


def _lengths(extent: int, lengths: Any) -> GridAxis:
    """One length, or a list of lengths."""
    if not isinstance(lengths, list | tuple):
        return _regular(extent, lengths)
    return RunsAxis(extent, [(_positive(length), 1) for length in lengths])


def _runs(extent: int, runs: Any) -> GridAxis:
    """One length, or a list of lengths and of runs ``[length, repeats]``."""
    if not isinstance(runs, list | tuple):
        return _regular(extent, runs)
    each = [run if isinstance(run, list | tuple) else (run, 1) for run in runs]
    if wrong := [run for run in each if len(run) != 2]:
        raise ValueError(f"{wrong[0]!r} is not a run of a length and its repeats")
    return RunsAxis(extent, [(_positive(length), _positive(times)) for length, times in each])


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} is not a valid chunk length")
    return value


def _grid(
    member: str, make: Callable[[int, Any], GridAxis], **others: str
) -> Callable[[Shape, Mapping[str, Any]], ChunkGrid]:
    """A grid whose configuration has what ``make`` takes of each axis, and ``others``."""

    def grid(shape: Shape, configuration: Mapping[str, Any]) -> ChunkGrid:
        axes = configuration.get(member)
        if configuration != {**others, member: axes} or not isinstance(axes, list | tuple):
            also = "".join(f"{name} {value} and " for name, value in others.items())
            raise ValueError(f"expected {also}{member}, a list, and nothing else")
        if len(axes) != len(shape):
            raise ValueError(f"expected a {member} of {len(shape)} axes")
        return ChunkGrid([make(extent, axis) for extent, axis in zip(shape, axes, strict=True)])

    return grid


CHUNK_GRIDS: dict[str, Callable[[Shape, Mapping[str, Any]], ChunkGrid]] = {
    "regular": _grid("chunk_shape", _regular),
    "rectilinear": _grid("chunk_shapes", _runs, kind="inline"),
    "rectangular": _grid("chunk_shape", _lengths),
    "zarrs.regular_bounded": _grid("chunk_shape", _bounded),
}
"""Functions of the array's shape and the configuration; they raise ValueError."""
