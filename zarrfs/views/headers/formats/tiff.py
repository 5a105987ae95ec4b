"""TIFF, and BigTIFF from 4 GiB on: one directory (IFD) for each plane, all before the elements.

https://www.adobe.io/content/dam/udp/en/open/standards/tiff/TIFF6.pdf, http://bigtiff.org. The
directories are in the order of the planes. ImageJ and Fiji open stacks of the types that ImageJ
supports, with their axes if these are in ImageJ's order; tifffile opens all stacks with their
shape. GDAL, vips and ImageMagick see a page for each plane.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import Any

import numpy as np

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.units import metres, ratio
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, Form, Inexpressible, Plan
from zarrfs.views.headers.formats.stack import description, is_imagej, plane_names
from zarrfs.views.headers.tiff.directories import (
    ASCII,
    BYTE,
    LONG,
    LONG8,
    SHORT,
    Encoding,
    Entry,
    Field,
    directory,
    fields,
)
from zarrfs.views.headers.tiff.geotiff import georeference_tags
from zarrfs.views.headers.tiff.tags import (
    SAMPLE_FORMATS,
    gdal_metadata,
    resolutions,
    resolutions_per,
)

_LARGEST_CLASSIC = 2**32 - 1
_ALIGNMENT = 64


def tif(array: Described) -> Plan:
    """Planes of one channel, or of two to four interleaved channels."""
    sample_format = array.type_in(SAMPLE_FORMATS, "TIFF")
    array.check("TIFF", 2, 32)
    if array.channels and len(array.axes) < 3:
        raise Inexpressible("TIFF takes planes of two axes")
    pages = math.prod(axis.length for axis in array.image_axes[:-2])
    if pages * Encoding(True, "<").directory_size(16) > LARGEST_HEADER:
        raise Inexpressible(f"a TIFF header of {pages} planes would be too large")
    return partial(_form, array, sample_format, pages)


def _form(array: Described, sample_format: int, pages: int) -> Form:
    end = ">" if array.big else "<"
    shape = Encoding(array.nbytes + LARGEST_HEADER > _LARGEST_CLASSIC, end)
    plane = array.nbytes // pages
    entries = _entries(array, sample_format, plane)
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


def _entries(array: Described, sample_format: int, plane: int) -> dict[int, Entry]:
    axes = array.image_axes
    samples = max(1, array.channels)
    bits = array.data_type.item_size * 8
    long = LONG8 if plane > _LARGEST_CLASSIC else LONG
    entries: dict[int, Entry] = {
        256: (LONG, [axes[-1].length]),
        257: (LONG, [axes[-2].length]),
        258: (SHORT, [bits] * samples),
        259: (SHORT, [1]),  # not compressed
        262: (SHORT, [2 if samples >= 3 else 1]),  # RGB, or grey with 0 for black
        270: (ASCII, [description(array)]),
        273: (LONG8 if array.nbytes + LARGEST_HEADER > _LARGEST_CLASSIC else LONG, [0]),
        277: (SHORT, [samples]),
        278: (LONG, [axes[-2].length]),
        279: (long, [plane]),
        339: (SHORT, [sample_format] * samples),
    }
    if samples in (2, 4):
        entries[338] = (SHORT, [0])
    if samples > 1:
        entries[284] = (SHORT, [1])
    if (missing := array.no_data) is not None:
        entries[42113] = (ASCII, [f"{missing!r}\0".encode()])  # GDAL's NoData
    if (values := gdal_metadata(array, samples)) is not None:
        entries[42112] = (ASCII, [values])
    entries |= georeference_tags(array.georeference)
    if (names := plane_names(array)) is not None:
        counts, data = names
        entries[50838] = (LONG, counts)
        entries[50839] = (BYTE, [data])
    return entries | _resolutions(array, axes[-1], axes[-2])


# Entries of the first directory only: the description, and ImageJ's metadata.
_OF_THE_FILE = (270, 50838, 50839)


def _resolutions(array: Described, x: Axis, y: Axis) -> dict[int, Entry]:
    """Elements per unit: per centimetre, or per ImageJ's unit, which its description names."""
    if not is_imagej(array):
        return resolutions(x, y)
    if x.spacing is None or y.spacing is None:
        return {}
    spacings = [x.size, y.size]
    if x.unit != y.unit:
        length = [metres(axis.unit) for axis in (x, y)]
        if length[0] is None or length[1] is None:
            return {}
        spacings[1] *= ratio(length[1], length[0])
    return resolutions_per(spacings, 1)


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
