"""TIFF, and BigTIFF from 4 GiB on: one directory (IFD) for each plane, all before the elements.

https://www.adobe.io/content/dam/udp/en/open/standards/tiff/TIFF6.pdf, http://bigtiff.org. The
directories are in the order of the planes. ImageJ and Fiji open stacks of the types that ImageJ
supports, with their axes if these are in ImageJ's order; tifffile opens all stacks with their
shape. GDAL, vips and ImageMagick see a page for each plane.
"""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.units import metres, ratio
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, Form, Inexpressible, Plan
from zarrfs.views.headers.formats.geotiff import DOUBLE, SHORT, georeference_tags
from zarrfs.views.headers.formats.stack import description, is_imagej, plane_names

# SampleFormat.
TYPES = {
    **dict.fromkeys(("b1", "u1", "u2", "u4", "u8"), 1),
    **dict.fromkeys(("i1", "i2", "i4", "i8"), 2),
    **dict.fromkeys(("f2", "f4", "f8"), 3),
    **dict.fromkeys(("c8", "c16"), 6),
}
_LARGEST_CLASSIC = 2**32 - 1
_ALIGNMENT = 64
_LONG, _RATIONAL, _ASCII, _LONG8 = 4, 5, 2, 16
_BYTE = 1


class _Shape(NamedTuple):
    """``tiff`` is packed with ``end``; directory entries contain up to ``inline`` bytes."""

    big: bool
    end: str

    @property
    def inline(self) -> int:
        return 8 if self.big else 4

    @property
    def word(self) -> str:
        """The format character of offsets."""
        return self.end + ("Q" if self.big else "I")

    def directory_size(self, entries: int) -> int:
        return 16 + 20 * entries if self.big else 6 + 12 * entries


def tif(array: Described) -> Plan:
    """Planes of one channel, or of two to four interleaved channels."""
    sample_format = array.type_in(TYPES, "TIFF")
    array.check("TIFF", 2, 32)
    if array.channels and len(array.axes) < 3:
        raise Inexpressible("TIFF takes planes of two axes")
    pages = math.prod(axis.length for axis in array.image_axes[:-2])
    if pages * _Shape(True, "<").directory_size(16) > LARGEST_HEADER:
        raise Inexpressible(f"a TIFF header of {pages} planes would be too large")
    return partial(_form, array, sample_format, pages)


def _form(array: Described, sample_format: int, pages: int) -> Form:
    end = ">" if array.big else "<"
    shape = _Shape(array.nbytes + LARGEST_HEADER > _LARGEST_CLASSIC, end)
    plane = array.nbytes // pages
    entries = _entries(array, sample_format, plane)
    header = bytearray(16 if shape.big else 8)
    values = {tag: _value(shape, header, *entry) for tag, entry in sorted(entries.items())}
    first = _directory(shape, entries, values)
    rest = {tag: entry for tag, entry in entries.items() if tag not in _OF_THE_FILE}
    other = _directory(shape, rest, values)
    at = len(header) + -len(header) % 8
    header += bytes(at - len(header))
    start = at + len(first) + (pages - 1) * len(other)
    start += -start % _ALIGNMENT
    offsets = start + np.arange(pages) * plane
    one = np.frombuffer(first, np.uint8)[None]
    data = [_placed(shape, one, entries, offsets[:1], at, last=pages == 1)]
    if pages > 1:
        tiled = np.tile(np.frombuffer(other, np.uint8), (pages - 1, 1))
        data.append(_placed(shape, tiled, rest, offsets[1:], at + len(first), last=True))
    if shape.big:
        header[:16] = (b"MM" if array.big else b"II") + struct.pack(end + "HHHQ", 43, 8, 0, at)
    else:
        header[:8] = (b"MM" if array.big else b"II") + struct.pack(end + "HI", 42, at)
    header += b"".join(part.tobytes() for part in data)
    return Form(bytes(header).ljust(start, b"\0"), array.layout)


_Entry = tuple[int, list[Any]]
"""Type, and values of that type."""


def _entries(array: Described, sample_format: int, plane: int) -> dict[int, _Entry]:
    axes = array.image_axes
    samples = max(1, array.channels)
    bits = array.data_type.item_size * 8
    long = _LONG8 if plane > _LARGEST_CLASSIC else _LONG
    entries: dict[int, _Entry] = {
        256: (_LONG, [axes[-1].length]),
        257: (_LONG, [axes[-2].length]),
        258: (SHORT, [bits] * samples),
        259: (SHORT, [1]),  # not compressed
        262: (SHORT, [2 if samples >= 3 else 1]),  # RGB, or grey with 0 for black
        270: (_ASCII, [description(array)]),
        273: (_LONG8 if array.nbytes + LARGEST_HEADER > _LARGEST_CLASSIC else _LONG, [0]),
        277: (SHORT, [samples]),
        278: (_LONG, [axes[-2].length]),
        279: (long, [plane]),
        339: (SHORT, [sample_format] * samples),
    }
    if samples in (2, 4):
        entries[338] = (SHORT, [0])
    if samples > 1:
        entries[284] = (SHORT, [1])
    if (missing := array.no_data) is not None:
        entries[42113] = (_ASCII, [f"{missing!r}\0".encode()])  # GDAL's NoData
    if (values := _gdal_metadata(array, samples)) is not None:
        entries[42112] = (_ASCII, [values])
    entries |= georeference_tags(array.georeference)
    if (names := plane_names(array)) is not None:
        counts, data = names
        entries[50838] = (_LONG, counts)
        entries[50839] = (_BYTE, [data])
    return entries | _resolutions(array, axes[-1], axes[-2])


# Entries of the first directory only: the description, and ImageJ's metadata.
_OF_THE_FILE = (270, 50838, 50839)


def _resolutions(array: Described, x: Axis, y: Axis) -> dict[int, _Entry]:
    """Elements per unit: per centimetre, or per ImageJ's unit, which its description names."""
    if x.spacing is None or y.spacing is None:
        return {}
    length = [metres(axis.unit) for axis in (x, y)]
    spacings = [x.size, y.size]
    centimetres = not is_imagej(array)
    if centimetres:
        if length[0] is None or length[1] is None:
            return {}
        spacings = [s * m * 100 for s, m in zip(spacings, length, strict=True) if m is not None]
    elif x.unit != y.unit:
        if length[0] is None or length[1] is None:
            return {}
        spacings[1] *= ratio(length[1], length[0])
    found = [_per_unit(spacing) for spacing in spacings]
    if found[0] is None or found[1] is None:
        return {}
    unit = 3 if centimetres else 1
    return {282: (_RATIONAL, [found[0]]), 283: (_RATIONAL, [found[1]]), 296: (SHORT, [unit])}


def _per_unit(spacing: float) -> tuple[int, int] | None:
    """The nearest fraction that TIFF can hold; None if it is not near."""
    if not 1e-9 < spacing < 1e9:
        return None
    fraction = 1 / Fraction(spacing)
    if spacing > 1:
        fraction = 1 / (1 / fraction).limit_denominator(2**32 // (int(spacing) + 1))
    else:
        fraction = fraction.limit_denominator(2**32 // (int(1 / spacing) + 1))
    numerator, denominator = fraction.numerator, fraction.denominator
    return (numerator, denominator) if 0 < numerator < 2**32 > denominator else None


def _gdal_metadata(array: Described, samples: int) -> bytes | None:
    """Unit, scale, offset and description of each sample, in GDAL's form; None if none is known."""
    facts = array.facts
    said: list[tuple[str, str]] = []
    if facts.packed:
        said.append(("offset", repr(facts.offset or 0.0)))
        said.append(("scale", repr(1.0 if facts.scale is None else facts.scale)))
    if facts.unit:
        said.append(("unittype", facts.unit))
    names = array.band_names(samples) if array.channels else None
    items = []
    for sample in range(samples):
        title = facts.description if names is None else names[sample]
        for role, value in [*said, *([("description", title)] if title else [])]:
            place = f'name="{role.upper()}" sample="{sample}" role="{role}"'
            items.append(f"<Item {place}>{escape(value)}</Item>")
    if not items:
        return None
    return "".join(["<GDALMetadata>", *items, "</GDALMetadata>"]).encode() + b"\0"


def _value(shape: _Shape, header: bytearray, kind: int, values: list[Any]) -> bytes:
    """The value field of an entry; a value that is too long for it is added to ``header``."""
    if kind in (_ASCII, _BYTE):
        data = values[0]
    elif kind == DOUBLE:
        data = struct.pack(f"{shape.end}{len(values)}d", *values)
    elif kind == _RATIONAL:
        data = b"".join(struct.pack(shape.end + "II", *value) for value in values)
    else:
        letter = {SHORT: "H", _LONG: "I", _LONG8: "Q"}[kind]
        data = struct.pack(f"{shape.end}{len(values)}{letter}", *values)
    if len(data) <= shape.inline:
        return data.ljust(shape.inline, b"\0")  # type: ignore[no-any-return]
    header += bytes(-len(header) % 8)
    at = len(header)
    header += data
    return struct.pack(shape.word, at)


def _directory(shape: _Shape, entries: dict[int, _Entry], values: dict[int, bytes]) -> bytes:
    """A directory, with room for the offset of the next one."""
    parts = [struct.pack(shape.end + ("Q" if shape.big else "H"), len(entries))]
    for tag, (kind, given) in sorted(entries.items()):
        count = len(given[0]) if kind in (_ASCII, _BYTE) else len(given)
        parts += [struct.pack(shape.end + "HH", tag, kind), struct.pack(shape.word, count)]
        parts.append(values[tag])
    data = b"".join([*parts, bytes(shape.inline)])
    return data.ljust(shape.directory_size(len(entries)), b"\0")


def _placed(
    shape: _Shape,
    directories: np.ndarray[Any, Any],
    entries: dict[int, _Entry],
    offsets: np.ndarray[Any, Any],
    at: int,
    *,
    last: bool,
) -> np.ndarray[Any, Any]:
    """Write the offsets of the planes, and of the next directories, into each directory.

    at : offset of the first directory; they are adjacent.
    last : whether no other directory follows.
    """
    word = np.dtype(shape.word)
    directories = directories.copy()
    width = directories.shape[1]
    number = sorted(entries).index(273)
    column = (8 + 20 * number + 12) if shape.big else (2 + 12 * number + 8)
    directories[:, column : column + word.itemsize] = _bytes_of(offsets, word)
    following = at + width * np.arange(1, len(directories) + 1)
    if last:
        following[-1] = 0
    end = (8 + 20 * len(entries)) if shape.big else (2 + 12 * len(entries))
    directories[:, end : end + word.itemsize] = _bytes_of(following, word)
    return directories


def _bytes_of(numbers: np.ndarray[Any, Any], word: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return numbers.astype(word).view(np.uint8).reshape(len(numbers), word.itemsize)
