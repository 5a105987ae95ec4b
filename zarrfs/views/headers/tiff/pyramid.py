"""``image.ome.tif``, ``image.tif`` and ``array.cog.tif``: an image in one tiled BigTIFF.

Everything is arithmetic on the position in the file: directories and the tables of tiles are
computed when they are read. Which programs find the reduced levels where:

- in the directories' SubIFDs: tifffile, Bio-Formats, GDAL, libvips;
- in the main chain, with NewSubfileType 1: openslide, tiffslide, GDAL, and each reader of
  cloud-optimised GeoTIFF.

An OME-TIFF of one plane has them in both; a GeoTIFF must not.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, GroupForm, Inexpressible, Placed, Plan, check_size
from zarrfs.views.headers.grouped import Grouped, GroupFormat, Member
from zarrfs.views.headers.tiff.directories import (
    ASCII,
    IFD8,
    LONG,
    LONG8,
    Encoding,
    Entry,
    Field,
    directory,
    fields,
)
from zarrfs.views.headers.tiff.levels import Level, is_ome, level_paths, levels, only_level
from zarrfs.views.headers.tiff.ome_xml import ome_xml
from zarrfs.views.headers.tiff.tags import (
    gdal_metadata,
    georeference_tags,
    image_tags,
    photometric,
    resolutions,
)
from zarrfs.views.tiles.computed import Computed, Numbers, Rows, Table
from zarrfs.views.tiles.tiling import Tiling

_BIG = Encoding(True, "<")
_MOST_SAMPLES = 65535
# Between the header and the elements: the kernel reads ahead of programs that read the header, and
# elements that nobody asked for would be decoded.
_GAP = 128 << 10
_ALIGNMENT = 64 << 10

Where: TypeAlias = Literal["chain", "subdirectories", "both"]
"""Where the directories of the reduced levels are found."""


def ome_tif(group: Grouped) -> GroupForm:
    """One directory for each plane, with OME-XML. Raises Inexpressible."""
    if not is_ome(group.attributes):
        raise Inexpressible("the group does not describe an image of OME-Zarr")
    found = levels(group.members)
    planes = math.prod(found[0].outer)
    text = ome_xml(found[0].array, group.name)
    first: dict[int, Entry] = {270: (ASCII, [text.encode() + b"\0"])}
    image = _Image(found, planes, bands=1, where="both" if planes == 1 else "subdirectories")
    return _File(image, first, range(len(found))).form()


def geo_tif(group: Grouped) -> GroupForm:
    """A cloud-optimised GeoTIFF: the planes are bands. Raises Inexpressible."""
    found = levels(_one_variable(group))
    _check_map(found[0])
    return _map([level for level in found if level.outer == found[0].outer])


def cog_tif(array: Described) -> Plan:
    """The same of one array, without overviews. Raises Inexpressible.

    An overview is not stored, and each of its tiles would take decoding all chunks below it.
    """
    if array.layout != FlatConfig():
        raise Inexpressible("tiles are little-endian, in C order")
    if array.chunks is None:
        raise Inexpressible("tiles are made of chunks of one shape")
    level = only_level(array, array.chunks)
    _check_map(level)
    # Twice, for the directory: it has fewer bytes than the tiles.
    check_size(2 * Tiling(array.shape, level.box, array.data_type.item_size, 0).size)
    return lambda: Form(b"", array.layout, boxed=_map([level]))


def _check_map(level: Level) -> None:
    """Raises Inexpressible."""
    array = level.array
    array.type_in("TIFF")
    photometric(array, math.prod(level.outer))
    if not array.is_on_earth:
        raise Inexpressible("the place of the image on the earth is not known")
    if len(level.outer) > 1 or (level.outer and array.channels):
        raise Inexpressible("a GeoTIFF has at most three axes")
    if math.prod(level.outer) > _MOST_SAMPLES:
        raise Inexpressible(f"TIFF takes at most {_MOST_SAMPLES} bands")


def _map(found: Sequence[Level]) -> GroupForm:
    """``found`` : the largest first."""
    array = found[0].array
    bands = math.prod(found[0].outer)
    first = georeference_tags(array.georeference)
    first |= gdal_metadata(array, max(bands, found[0].samples))
    image = _Image(found, 1, bands, "chain")
    return _File(image, first, range(len(found) - 1, -1, -1)).form()


def _one_variable(group: Grouped) -> Sequence[Member]:
    """The arrays of an image whose levels are arrays, or groups with one image each.

    Raises Inexpressible.
    """
    paths = level_paths(group.attributes)
    by_path = {member.path: member for member in group.members}
    if paths[0] in by_path:
        return [by_path[path] for path in paths if path in by_path]
    inside = [m for m in group.members if m.path.rpartition("/")[0] == paths[0]]
    names = [m.path.rpartition("/")[2] for m in inside if m.array.facts.y_axis is not None]
    if len(names) != 1:
        raise Inexpressible(f"a level has {len(names)} images, not one")
    found = (by_path.get(f"{path}/{names[0]}") for path in paths)
    return [member for member in found if member is not None]


OME = GroupFormat(lambda said: level_paths(said) if is_ome(said) else [], ome_tif)
GEO = GroupFormat(level_paths, geo_tif)


@dataclass(frozen=True, slots=True)
class _Image:
    """
    planes : directories of each level.
    bands : planes of one directory, as samples in planes of their own.
    """

    levels: Sequence[Level]
    planes: int
    bands: int
    where: Where

    def tiles(self, number: int) -> int:
        """Tiles of a directory of a level."""
        level = self.levels[number]
        rows, columns = level.tile
        return self.bands * -(-level.height // rows) * -(-level.width // columns)


class _Block(NamedTuple):
    """Directories of one level, one after another.

    first : the plane of the first of them.
    """

    level: int
    first: int
    length: int
    start: int
    tags: Sequence[int]

    @property
    def width(self) -> int:
        return _BIG.directory_size(len(self.tags))


class _File:
    """The places of all parts of a file, and the parts that are computed."""

    def __init__(self, image: _Image, first: Mapping[int, Entry], order: Sequence[int]) -> None:
        """
        first : entries of the first directory alone.
        order : of the levels' elements in the file.
        """
        self._image = image
        self._order = order
        self._end = 16
        count = len(image.levels)
        self._reduced = count - 1
        has_pointers = self._reduced > 1 and image.where != "chain"
        # Readers of cloud-optimised files look for the directories first of all.
        entries = [_entries(image, n) for n in range(count)]
        self._blocks = [self._block(0, 0, 1, {**entries[0], **first})]
        for n, found in enumerate(entries):
            self._blocks.append(self._block(n, int(n == 0), image.planes - int(n == 0), found))
        constants = bytearray()
        own = [fields(_BIG, constants, found, self._end) for found in entries]
        own.insert(0, own[0] | fields(_BIG, constants, first, self._end))
        self._fields = own
        self._constants = Table.of_bytes(self._place(1, len(constants)), bytes(constants))
        self._pointers = self._place(image.planes * self._reduced, 8) if has_pointers else 0
        self._counts = [self._place(image.tiles(n), 4) for n in range(count)]
        self._offsets = [self._place(image.planes * image.tiles(n), 8) for n in range(count)]
        self._tilings: dict[int, Tiling] = {}
        self._end = _after(self._end + _GAP, _ALIGNMENT)
        for n in order:
            level = image.levels[n]
            item = level.array.data_type.item_size
            tiling = Tiling(level.array.shape, level.box, item, self._end)
            self._tilings[n] = tiling
            self._end = _after(tiling.start + tiling.size, _ALIGNMENT)

    def form(self) -> GroupForm:
        placed = [Placed(self._image.levels[n].path, self._tilings[n]) for n in self._order]
        last = self._tilings[self._order[-1]]
        return GroupForm(Computed(self._tables()), placed, last.start + last.size, writable=True)

    def _tables(self) -> Iterator[Table]:
        image = self._image
        yield Table.of_bytes(0, struct.pack("<2sHHHQ", b"II", 43, 8, 0, self._blocks[0].start))
        yield self._constants
        for block, found in zip(self._blocks, self._fields, strict=True):
            row = np.frombuffer(directory(_BIG, found), np.uint8)
            rows = partial(self._directories, block, row)
            yield Table(block.start, block.length, block.width, rows)
        if self._pointers:
            count = image.planes * self._reduced
            yield Table.of_numbers(self._pointers, count, "<u8", self._subdirectories)
        for n, level in enumerate(image.levels):
            same = partial(_all_equal, level.tile_bytes)
            yield Table.of_numbers(self._counts[n], image.tiles(n), "<u4", same)
            offsets = partial(self._tile_offsets, n)
            count = image.planes * image.tiles(n)
            yield Table.of_numbers(self._offsets[n], count, "<u8", offsets)

    def _block(self, level: int, first: int, count: int, entries: Mapping[int, object]) -> _Block:
        start = self._place(count, _BIG.directory_size(len(entries)))
        return _Block(level, first, count, start, sorted(entries))

    def _place(self, count: int, width: int) -> int:
        here = self._end
        self._end = _after(here + count * width, 8)
        return here

    def _directories(self, block: _Block, row: Rows, numbers: Numbers) -> Rows:
        planes = numbers + block.first
        out = np.tile(row, (len(numbers), 1))
        values = {324: self._tiles_of, 325: self._counts_of, 330: self._reduced_of}
        for tag in values.keys() & set(block.tags):
            _put(out, _BIG.value_at(block.tags.index(tag)), values[tag](block.level, planes))
        _put(out, block.width - 8, self._next(block.level, planes))
        return out

    def _tiles_of(self, level: int, planes: Numbers) -> Numbers:
        tiles = self._image.tiles(level)
        if tiles == 1:
            return self._tile_offsets(level, planes)
        return self._offsets[level] + planes * tiles * 8

    def _counts_of(self, level: int, planes: Numbers) -> Numbers:
        tiles = self._image.tiles(level)
        size = self._image.levels[level].tile_bytes
        inline = size if tiles == 1 else size << 32 | size
        return _all_equal(inline if tiles <= 2 else self._counts[level], planes)

    def _reduced_of(self, level: int, planes: Numbers) -> Numbers:
        if self._reduced == 1:
            return self._directory_at(1, planes)
        return self._pointers + planes * self._reduced * 8

    def _next(self, level: int, planes: Numbers) -> Numbers:
        if level == 0 and self._image.planes > 1:
            return np.where(planes + 1 < self._image.planes, self._directory_at(0, planes + 1), 0)
        if self._image.where != "subdirectories" and level < self._reduced:
            return self._directory_at(level + 1, planes)
        return np.zeros_like(planes)

    def _directory_at(self, level: int, planes: Numbers) -> Numbers:
        first, *blocks = self._blocks
        block = blocks[level]
        there = block.start + (planes - block.first) * block.width
        return np.where(planes == 0, first.start, there) if level == 0 else there

    def _subdirectories(self, numbers: Numbers) -> Numbers:
        planes, level = np.divmod(numbers, self._reduced)
        at = [self._directory_at(n + 1, planes) for n in range(self._reduced)]
        return np.choose(level, at) if len(at) < 32 else np.stack(at)[level, range(len(level))]

    def _tile_offsets(self, number: int, numbers: Numbers) -> Numbers:
        """Where tiles of a level begin, numbered through all planes."""
        level = self._image.levels[number]
        outer = self._image.levels[0].outer
        rows, columns = level.tile
        across = -(-level.width // columns)
        down = -(-level.height // rows)
        plane, tile = np.divmod(numbers, down * across)
        # A level of fewer planes has each of them several times.
        index = [
            i * mine // its
            for i, mine, its in zip(_unravel(plane, outer), level.outer, outer, strict=True)
        ]
        depth = level.box[: len(outer)]
        box = [i // n for i, n in zip(index, depth, strict=True)]
        within = np.zeros_like(numbers)
        for i, n in zip(index, depth, strict=True):
            within = within * n + i % n
        last = [np.zeros_like(numbers)] * (len(level.box) - len(outer) - 2)
        start = self._tilings[number].offsets((*box, *np.divmod(tile, across), *last))
        return start + within * level.tile_bytes


def _entries(image: _Image, number: int) -> dict[int, Entry | Field]:
    level = image.levels[number]
    array = level.array
    rows, columns = level.tile
    y, x = array.image_axes[-2:]
    entries: dict[int, Entry | Field] = {
        **image_tags(array, image.bands),
        **resolutions(x, y),
        254: (LONG, [int(number > 0)]),
        322: (LONG, [columns]),
        323: (LONG, [rows]),
        # Their values stand elsewhere, or are another one in each directory.
        324: Field(LONG8, image.tiles(number), bytes(8)),
        325: Field(LONG, image.tiles(number), bytes(8)),
    }
    reduced = len(image.levels) - 1
    if reduced and number == 0 and image.where != "chain":
        entries[330] = Field(IFD8, reduced, bytes(8))
    return entries


def _put(rows: Rows, at: int, numbers: Numbers) -> None:
    """Have each row contain its number, as eight bytes."""
    rows[:, at : at + 8] = np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(-1, 8)


def _all_equal(value: int, numbers: Numbers) -> Numbers:
    return np.full(len(numbers), value, np.int64)


def _unravel(numbers: Numbers, shape: Shape) -> Sequence[Numbers]:
    return np.unravel_index(numbers, shape) if shape else ()


def _after(position: int, alignment: int) -> int:
    return position + -position % alignment
