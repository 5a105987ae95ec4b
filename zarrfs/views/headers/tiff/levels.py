"""The levels of an image that a group describes, and the shape of their tiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.facts.ome import said_in
from zarrfs.views.facts.text import dicts
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Inexpressible
from zarrfs.views.headers.grouped import Member

_MOST_LEVELS = 32
# TIFF has tiles of lengths that are multiples of the first; libvips and openslide take no others.
# openslide also takes no tile that is not a multiple of `_ROUND` bytes (libtiff 4.5 and later), as
# those of a multiple of `_UNIT` rows and columns are.
_LENGTHS, _UNIT, _ROUND = 16, 32, 1024
# Bytes of a plane of a chunk that is a tile by itself. Smaller planes are gathered to tiles, larger
# ones are divided: a viewer reads whole tiles.
_LEAST, _MOST = 64 << 10, 2 << 20
_USUAL, _LARGEST = 256, 512


class Level(NamedTuple):
    """One level, in C order.

    outer : the extents of the axes before y.
    box : the shape of the boxes of the array in the file; one box is a tile, or several planes of
        tiles.
    """

    path: str
    array: Described
    outer: Shape
    box: Shape

    @property
    def height(self) -> int:
        return self.array.image_axes[-2].length

    @property
    def width(self) -> int:
        return self.array.image_axes[-1].length

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        at = len(self.outer)
        return self.box[at], self.box[at + 1]

    @property
    def samples(self) -> int:
        """Interleaved channels."""
        return max(1, self.array.channels)

    @property
    def tile_bytes(self) -> int:
        return math.prod(self.tile) * self.samples * self.array.data_type.item_size


def level_paths(attributes: Mapping[str, Any]) -> list[str]:
    """The paths of the levels that a group describes, the largest first; none: it describes none.

    OME-Zarr: https://ngff.openmicroscopy.org/0.5/. The convention ``multiscales``, whose levels
    are arrays, or groups of arrays: https://github.com/zarr-conventions/multiscales.
    """
    said = said_in(attributes).get("multiscales")
    if isinstance(said, Mapping):
        named = [level.get("asset") for level in dicts(said.get("layout"))]
    else:
        image = next(iter(dicts(said)), {})
        named = [level.get("path") for level in dicts(image.get("datasets"))]
    paths = [path.strip("/") for path in named if isinstance(path, str) and path.strip("/")]
    return list(dict.fromkeys(paths))[:_MOST_LEVELS]


def is_ome(attributes: Mapping[str, Any]) -> bool:
    """Whether a group describes its levels in OME-Zarr's form."""
    said = said_in(attributes).get("multiscales")
    return isinstance(said, list) and bool(level_paths(attributes))


def levels(members: Sequence[Member]) -> list[Level]:
    """The levels of an image, the largest first. Raises Inexpressible if there is none.

    A level is left out that is of another type, of other axes or planes, or not smaller than the
    one before. It may have fewer planes along z: each plane then stands for several.
    """
    found: list[Level] = []
    for path, array, grid, *_ in members[:_MOST_LEVELS]:
        if not array.count or not _is_image(array):
            if not found:
                raise Inexpressible("the last axes of the largest level are not y and x")
            continue
        regular = grid.regular_shape is not None
        level = _level(path, array, grid.largest_chunk, regular=regular)
        if not found or _is_level(level, found[0], found[-1]):
            found.append(level)
    if not found:
        raise Inexpressible("none of its levels is an image")
    return _of_one_tile(found) if math.prod(found[0].outer) == 1 else found


def _of_one_tile(levels: list[Level]) -> list[Level]:
    """The same levels with tiles of one size: openslide shows no others.

    libvips 8.18 opens no level with tiles of more than twice its size in multiples of 128.
    """
    tile = levels[0].tile
    smallest = min(max(level.height, level.width) for level in levels)
    if max(tile) > 2 * -(-smallest // 128) * 128:
        tile = min(tile[0], _USUAL), min(tile[1], _USUAL)
    at = len(levels[0].outer)
    return [each._replace(box=(*each.outer, *tile, *each.box[at + 2 :])) for each in levels]


def only_level(array: Described, chunk: Shape) -> Level:
    """An image without others, in chunks of one shape. Raises Inexpressible."""
    if not array.count or not _is_image(array):
        raise Inexpressible("its last axes are not y and x")
    return _level("", array, chunk, regular=True)


def _is_image(array: Described) -> bool:
    # A tile of many interleaved bands would be large.
    return array.channels <= 4 and [axis.role for axis in array.image_axes[-2:]] == ["y", "x"]


def _level(path: str, array: Described, chunk: Shape, *, regular: bool) -> Level:
    outer = tuple(axis.length for axis in array.image_axes[:-2])
    return Level(path, array, outer, _box(array, chunk, regular=regular))


def _is_level(level: Level, first: Level, before: Level) -> bool:
    mine, its = level.array, first.array
    if (mine.code, mine.channels) != (its.code, its.channels):
        return False
    if [axis.role for axis in mine.axes] != [axis.role for axis in its.axes]:
        return False
    for axis, other in zip(mine.image_axes[:-2], its.image_axes[:-2], strict=True):
        if axis.length != other.length and not (axis.role == "z" and axis.length < other.length):
            return False
    smaller = level.height <= before.height and level.width <= before.width
    return smaller and (level.height, level.width) != (before.height, before.width)


def _box(array: Described, chunk: Shape, *, regular: bool) -> Shape:
    """The chunk itself, where its planes can be tiles; else one tile, gathered from chunks.

    chunk : the largest one.
    regular : whether all have its shape.
    """
    at = len(array.image_axes) - 2
    tail = (array.channels,) if array.channels else ()
    element = array.data_type.item_size * max(1, array.channels)
    # A chunk that alone fills an axis is cut, up to the next tile.
    plane = [
        chunk[at + i] if chunk[at + i] < axis.length else -(-axis.length // _UNIT) * _UNIT
        for i, axis in enumerate(array.image_axes[-2:])
    ]
    nbytes = math.prod(plane) * element
    fits = all(n % _LENGTHS == 0 for n in plane) and nbytes % _ROUND == 0
    whole = fits and _LEAST <= nbytes <= _MOST
    single = all(n >= axis.length for n, axis in zip(chunk[at:], array.axes[at:], strict=True))
    if regular and (whole or (single and math.prod(plane) < _LEAST)):
        depth = [min(n, axis.length) for n, axis in zip(chunk, array.image_axes[:-2], strict=False)]
        return (*depth, *plane, *tail)
    rows, columns = (
        _tile(n, axis.length) for n, axis in zip(plane, array.image_axes[-2:], strict=True)
    )
    return (*[1] * at, rows, columns, *tail)


def _tile(chunk: int, extent: int) -> int:
    """The length of a gathered tile along one axis."""
    usual = _USUAL
    if chunk % _UNIT == 0:
        if chunk <= _LARGEST:
            usual = chunk * (_LARGEST // chunk)
        else:
            usual = next((n for n in range(_LARGEST, 127, -_UNIT) if chunk % n == 0), _USUAL)
    return min(usual, -(-extent // _UNIT) * _UNIT)
