"""TIFF, and BigTIFF from 4 GiB on: one directory (IFD) for each plane, all before the elements.

https://www.adobe.io/content/dam/udp/en/open/standards/tiff/TIFF6.pdf, http://bigtiff.org. The
directories are in the order of the planes. ImageJ and Fiji open stacks of the types that ImageJ
supports, with their axes if these are in ImageJ's order; tifffile opens all stacks with their
shape. GDAL, vips and ImageMagick see a page for each plane.
"""

from __future__ import annotations

import json
import math
import struct
from functools import partial
from typing import Any

import numpy as np

from zarrfs.views.facts.facts import Axis, Role
from zarrfs.views.facts.text import ascii_text, digits
from zarrfs.views.facts.units import metres, ratio, seconds
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, Form, Inexpressible, Plan
from zarrfs.views.headers.tiff.directories import (
    ASCII,
    BYTE,
    LONG,
    LONG8,
    Encoding,
    Entry,
    Field,
    directory,
    fields,
)
from zarrfs.views.headers.tiff.tags import (
    gdal_metadata,
    georeference_tags,
    image_tags,
    photometric,
    resolutions,
    resolutions_per,
)

_LARGEST_CLASSIC = 2**32 - 1
_ALIGNMENT = 64
# Bytes of a directory for each sample: its bits, its format, and that it is no colour.
_SAMPLE = 6


def tif(array: Described) -> Plan:
    """Planes of one channel, or of several interleaved ones."""
    array.check("TIFF", 2, 32)
    if array.channels and len(array.axes) < 3:
        raise Inexpressible("TIFF takes planes of two axes")
    photometric(array)
    pages = math.prod(axis.length for axis in array.image_axes[:-2])
    long = Encoding(True, "<").directory_size(16) + _SAMPLE * array.channels
    if pages * long > LARGEST_HEADER:
        raise Inexpressible(f"a TIFF header of {pages} planes would be too large")
    return partial(_form, array, pages)


def _form(array: Described, pages: int) -> Form:
    end = ">" if array.big else "<"
    shape = Encoding(array.nbytes + LARGEST_HEADER > _LARGEST_CLASSIC, end)
    plane = array.nbytes // pages
    entries = _entries(array, plane)
    header = bytearray(16 if shape.big else 8)
    found = fields(shape, header, entries)
    first = directory(shape, found)
    rest = {tag: field for tag, field in found.items() if tag not in _OF_THE_FILE}
    other = directory(shape, rest)
    at = len(header) + -len(header) % 8
    header += bytes(at - len(header))
    start = at + len(first) + (pages - 1) * len(other)
    start += -start % _ALIGNMENT
    offsets = start + np.arange(pages) * plane
    one = np.frombuffer(first, np.uint8)[None]
    data = [_placed(shape, one, found, offsets[:1], at, last=pages == 1)]
    if pages > 1:
        tiled = np.tile(np.frombuffer(other, np.uint8), (pages - 1, 1))
        data.append(_placed(shape, tiled, rest, offsets[1:], at + len(first), last=True))
    if shape.big:
        header[:16] = (b"MM" if array.big else b"II") + struct.pack(end + "HHHQ", 43, 8, 0, at)
    else:
        header[:8] = (b"MM" if array.big else b"II") + struct.pack(end + "HI", 42, at)
    header += b"".join(part.tobytes() for part in data)
    return Form(bytes(header).ljust(start, b"\0"), array.layout)


def _entries(array: Described, plane: int) -> dict[int, Entry]:
    y, x = array.image_axes[-2:]
    long = LONG8 if plane > _LARGEST_CLASSIC else LONG
    entries: dict[int, Entry] = {
        **image_tags(array),
        **gdal_metadata(array, max(1, array.channels)),
        **georeference_tags(array.georeference),
        **_resolutions(array, x, y),
        270: (ASCII, [description(array)]),
        273: (LONG8 if array.nbytes + LARGEST_HEADER > _LARGEST_CLASSIC else LONG, [0]),
        278: (LONG, [y.length]),
        279: (long, [plane]),
    }
    if (names := plane_names(array)) is not None:
        counts, data = names
        entries[50838] = (LONG, counts)
        entries[50839] = (BYTE, [data])
    return entries


# Entries of the first directory only: the description, and ImageJ's metadata.
_OF_THE_FILE = (270, 50838, 50839)


def _resolutions(array: Described, x: Axis, y: Axis) -> dict[int, Entry]:
    """Elements per unit: per centimetre, or per ImageJ's unit, which its description names."""
    if not is_imagej(array):
        return resolutions(x, y)
    if x.spacing is None or (height := _in_unit(y, x)) is None:
        return {}
    return resolutions_per([x.size, abs(height)], 1)


def _placed(
    shape: Encoding,
    directories: np.ndarray[Any, Any],
    found: dict[int, Field],
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
    column = shape.value_at(sorted(found).index(273))
    directories[:, column : column + word.itemsize] = _bytes_of(offsets, word)
    following = at + width * np.arange(1, len(directories) + 1)
    if last:
        following[-1] = 0
    end = width - shape.inline
    directories[:, end : end + word.itemsize] = _bytes_of(following, word)
    return directories


def _bytes_of(numbers: np.ndarray[Any, Any], word: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return numbers.astype(word).view(np.uint8).reshape(len(numbers), word.itemsize)


# The axes of a TIFF's planes, for ImageJ and for tifffile.
# ImageJ reads ``images=N`` planes in a row from the first one, whatever the directories say, and
# takes time, then depth, then channels for their order. The form is true for such stacks only. All
# others are stacks of planes in their own order, whose shape and axes tifffile reads from JSON.
# https://imagej.net/ij/source/ij/io/TiffEncoder.java, https://github.com/cgohlke/tifffile

_TYPES = ("u1", "u2", "f4")
# ImageJ's order of the axes of a stack, slowest first, and its names for them.
_FIELDS: dict[Role, str] = {"time": "frames", "z": "slices", "channel": "channels"}
_ORDER = list(_FIELDS)
_LETTERS: dict[Role, str] = {"time": "T", "z": "Z", "channel": "C", "y": "Y", "x": "X"}
_UNITS = {1e-6: "um", 1e-9: "nm", 1e-3: "mm", 1e-2: "cm", 1.0: "m", 1e-10: "A", 0.0254: "inch"}
_MOST_NAMES = 10_000
_LARGEST_NAMES = 256 << 10


def is_imagej(array: Described) -> bool:
    """Whether the planes lie as ImageJ reads them in a row."""
    return _roles(array) is not None


def _roles(array: Described) -> list[Role] | None:
    """The roles of the outer axes in ImageJ's order; None if ImageJ has others."""
    axes = array.image_axes
    if array.code not in _TYPES or not _plane_is_known(axes[-2:]) or array.channels > 4:
        return None
    outer = axes[:-2]
    if len(outer) == 1 and not outer[0].name:
        return ["z"]
    roles = [axis.role for axis in outer]
    if len(set(roles)) < len(roles) or not set(roles) <= set(_ORDER):
        return None
    # An axis of one element lies anywhere.
    long = [_ORDER.index(axis.role) for axis in outer if axis.length > 1]
    return roles if long == sorted(long) else None


def _plane_is_known(plane: tuple[Axis, ...]) -> bool:
    """Whether lines and columns are y and x, or have no names."""
    roles = [axis.role for axis in plane]
    return roles == ["y", "x"] or not any(axis.name for axis in plane)


def description(array: Described) -> bytes:
    """The text of the first directory."""
    roles = _roles(array)
    if roles is None:
        return _shaped(array)
    axes = array.image_axes
    outer = dict(zip(roles, axes[:-2], strict=True))
    lines = ["ImageJ=1.53t", f"images={math.prod(axis.length for axis in axes[:-2])}"]
    # ImageJ's own order of these lines.
    lines += [f"{_FIELDS[role]}={outer[role].length}" for role in reversed(_ORDER) if role in outer]
    if len(outer) > 1:
        lines.append("hyperstack=true")
    composite = "channel" in outer and any(c.colour for c in array.facts.channels)
    lines.append(f"mode={'composite' if composite else 'grayscale'}")
    lines += _places(outer.get("z"), axes[-2], axes[-1])
    time = outer.get("time", Axis(1))
    unit = seconds(time.unit)
    if time.spacing is not None and not time.falls and unit is not None:
        # In seconds, as ImageJ has it without a unit.
        lines.append(f"finterval={digits(time.size * unit)}")
    windows = [channel.window for channel in array.facts.channels]
    if len(windows) == 1 and windows[0] is not None and not array.channels:
        lines += [f"min={digits(windows[0][0])}", f"max={digits(windows[0][1])}"]
    return ("\n".join(lines) + "\n\0").encode()


def _places(z: Axis | None, y: Axis, x: Axis) -> list[str]:
    """Unit, depth of a slice, and the element at the origin of the unit's coordinates."""
    if x.spacing is None:
        return []
    lines = []
    unit = ascii_text(_UNITS.get(metres(x.unit) or 0.0, x.unit), 16)
    if unit and unit.isalpha():
        lines.append(f"unit={unit}")
    for name, axis in (("x", x), ("y", y), ("z", z)):
        if axis is None or axis.spacing is None:
            continue
        if name == "z" and (depth := _in_unit(axis, x)) is not None:
            lines.append(f"spacing={digits(abs(depth))}")
        if axis.origin and not axis.falls:
            lines.append(f"{name}origin={digits(-axis.origin / axis.spacing)}")
    return lines


def _in_unit(axis: Axis, of: Axis) -> float | None:
    """The spacing of an axis in the unit of another; None if it has none."""
    if axis.spacing is None or axis.unit == of.unit:
        return axis.spacing
    mine, other = metres(axis.unit), metres(of.unit)
    return None if mine is None or other is None else axis.spacing * ratio(mine, other)


def _shaped(array: Described) -> bytes:
    letters = [_LETTERS.get(axis.role, "") for axis in array.axes]
    if array.channels:
        letters[-1] = "S"
    said: dict[str, object] = {"shape": array.shape}
    if all(letters) and len(set(letters)) == len(letters):
        said["axes"] = "".join(letters)
    return json.dumps(said).encode() + b"\0"


def plane_names(array: Described) -> tuple[list[int], bytes] | None:
    """ImageJ's metadata about channels: lengths of the parts, and the parts; None without any.

    Names of planes, ranges of values, and colours.
    """
    roles = _roles(array)
    channels = array.facts.channels
    if roles is None or "channel" not in roles or not channels:
        return None
    planes = math.prod(axis.length for axis in array.image_axes[:-2])
    parts: list[tuple[bytes, list[bytes]]] = []
    end = ">" if array.big else "<"
    names = array.band_names(planes) if planes <= _MOST_NAMES else None
    if names is not None:
        encoding = "utf-16-be" if array.big else "utf-16-le"
        labels = [name.encode(encoding, "replace") for name in names]
        if sum(map(len, labels)) <= _LARGEST_NAMES:
            parts.append((b"labl", labels))
    windows = [channel.window for channel in channels if channel.window is not None]
    if len(windows) == len(channels):
        numbers = [number for window in windows for number in window]
        parts.append((b"rang", [struct.pack(f"{end}{len(numbers)}d", *numbers)]))
    colours = [channel.colour for channel in channels if channel.colour is not None]
    if len(colours) == len(channels):
        parts.append((b"luts", [_lut(colour) for colour in colours]))
    if not parts:
        return None
    head = b"IJIJ" if array.big else b"JIJI"
    for kind, values in parts:
        head += (kind if array.big else kind[::-1]) + struct.pack(end + "I", len(values))
    data = [value for _, values in parts for value in values]
    return [len(head), *map(len, data)], b"".join([head, *data])


def _lut(colour: tuple[int, int, int]) -> bytes:
    """From black to the colour, in 256 steps of red, of green and of blue."""
    return b"".join(bytes(part * step // 255 for step in range(256)) for part in colour)
