"""TIFF, and BigTIFF from 4 GiB on: one directory (IFD) for each plane, all before the elements.

https://www.adobe.io/content/dam/udp/en/open/standards/tiff/TIFF6.pdf, http://bigtiff.org. ImageJ
and Fiji open stacks of the types that ImageJ supports, with their axes; tifffile opens all stacks
with their shape. GDAL, vips and ImageMagick see a page for each plane.
"""

from __future__ import annotations

import json
import math
import struct
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.form import LARGEST_HEADER, Form, Inexpressible, Plan
from zarrfs.views.headers.formats.geotiff import DOUBLE, SHORT, georeference_tags
from zarrfs.views.headers.text import ascii_text, digits

# SampleFormat.
TYPES = {
    **dict.fromkeys(("b1", "u1", "u2", "u4", "u8"), 1),
    **dict.fromkeys(("i1", "i2", "i4", "i8"), 2),
    **dict.fromkeys(("f2", "f4", "f8"), 3),
    **dict.fromkeys(("c8", "c16"), 6),
}
_IMAGEJ = ("u1", "u2", "f4")
_LARGEST_CLASSIC = 2**32 - 1
_ALIGNMENT = 64
_LONG, _RATIONAL, _ASCII, _LONG8 = 4, 5, 2, 16
_UNITS = {"micrometer": "um", "micrometre": "um", "micron": "um", "µm": "um", "μm": "um",
          "nanometer": "nm", "nanometre": "nm", "millimeter": "mm", "angstrom": "A"}  # fmt: skip
# ImageJ's order of the axes of a stack, slowest first, and its names for them.
_STACK = {"t": "frames", "z": "slices", "c": "channels"}


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
    axes = array.image_axes
    plane = array.nbytes // pages
    stack = _stack_order(array, axes[:-2])
    order = np.arange(pages)
    if stack is not None:
        lengths = tuple(axis.length for axis in axes[:-2])
        order = order.reshape(lengths).transpose(stack).reshape(-1)
    entries = _entries(array, sample_format, plane, _description(array, stack))
    header = bytearray(16 if shape.big else 8)
    values = {tag: _value(shape, header, *entry) for tag, entry in sorted(entries.items())}
    first = _directory(shape, entries, values)
    rest = {tag: entry for tag, entry in entries.items() if tag != 270}
    other = _directory(shape, rest, values)
    at = len(header) + -len(header) % 8
    header += bytes(at - len(header))
    start = at + len(first) + (pages - 1) * len(other)
    start += -start % _ALIGNMENT
    offsets = start + order * plane
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


def _entries(
    array: Described, sample_format: int, plane: int, description: bytes
) -> dict[int, _Entry]:
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
        270: (_ASCII, [description]),
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
    if (fill := array.no_data) is not None:
        entries[42113] = (_ASCII, [f"{fill!r}\0".encode()])  # GDAL's NoData
    entries |= georeference_tags(array.georeference)
    if (found := [_resolution(axis) for axis in (axes[-1], axes[-2])]) != [None, None]:
        entries[282] = (_RATIONAL, [found[0] or (1, 1)])
        entries[283] = (_RATIONAL, [found[1] or (1, 1)])
        entries[296] = (SHORT, [1])  # no unit that TIFF knows
    return entries


def _resolution(axis: Axis) -> tuple[int, int] | None:
    """Elements per unit."""
    if axis.spacing is None or not 1e-6 < axis.spacing < 1e6:
        return None
    fraction = (1 / Fraction(axis.spacing)).limit_denominator(10**6)
    numerator, denominator = fraction.numerator, fraction.denominator
    return (numerator, denominator) if 0 < numerator < 2**32 else None


def _stack_order(array: Described, outer: tuple[Axis, ...]) -> tuple[int, ...] | None:
    """ImageJ's order of the outer axes, slowest first; None if they are not its axes."""
    if array.code not in _IMAGEJ or len(outer) > 3:
        return None
    names = [axis.name.lower() for axis in outer]
    if len(outer) == 1 and names[0] not in _STACK:
        names = ["z"]
    if len(set(names)) < len(names) or not set(names) <= set(_STACK):
        return None
    return tuple(sorted(range(len(names)), key=lambda i: list(_STACK).index(names[i])))


def _description(array: Described, stack: tuple[int, ...] | None) -> bytes:
    axes = array.image_axes
    if stack is None:
        return json.dumps({"shape": array.shape}).encode() + b"\0"
    outer = axes[:-2]
    lines = ["ImageJ=1.53t", f"images={math.prod(axis.length for axis in outer)}"]
    names = [outer[i].name.lower() if len(outer) > 1 else _only(outer[i]) for i in stack]
    # ImageJ's own order of these lines.
    for name, field in reversed(_STACK.items()):
        if name in names:
            lines.append(f"{field}={outer[stack[names.index(name)]].length}")
    if len(outer) > 1:
        lines.append("hyperstack=true")
    lines.append("mode=grayscale")
    unit = ascii_text(_UNITS.get(axes[-1].unit, axes[-1].unit), 16)
    if unit and unit.isalpha():
        lines.append(f"unit={unit}")
    for axis, name in zip((outer[i] for i in stack), names, strict=True):
        if axis.spacing is not None and name in "zt":
            lines.append(f"{'spacing' if name == 'z' else 'finterval'}={digits(axis.spacing)}")
    return ("\n".join(lines) + "\n\0").encode()


def _only(axis: Axis) -> str:
    return axis.name.lower() if axis.name.lower() in _STACK else "z"


def _value(shape: _Shape, header: bytearray, kind: int, values: list[Any]) -> bytes:
    """The value field of an entry; a value that is too long for it is added to ``header``."""
    if kind == _ASCII:
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
        count = len(given[0]) if kind == _ASCII else len(given)
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
