"""Reads shape and data type from headers of other formats, and nothing else.

NPY: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
NRRD: https://teem.sourceforge.net/nrrd/format.html
MetaImage: https://docs.itk.org/en/latest/learn/metaio.html
ENVI: https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html
TIFF, BigTIFF: read by tifffile, which knows how programs spread arrays over pages.
"""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError, UsageError, reason_of, to_install
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.numpy_types import data_type_json
from zarrfs.isolation.decoders import isolated
from zarrfs.library.transfer.flat_form import parse_npy
from zarrfs.views.headers.type_names import TYPE_NAMES

LARGEST_HEADER = 1 << 20
"""Bytes; the headers that programs write have hundreds."""


@dataclass(frozen=True, slots=True)
class Header:
    """An array in another format.

    shape : slowest axis first, whatever the format's own order.
    data_type : as v3 metadata has it.
    """

    shape: Shape
    data_type: Any


class HeaderError(ValueError):
    """The reason why zarrfs cannot tell shape or type from a file; does not name the file."""


def read_header(path: str) -> Header:
    """The header, of the format that the contents tell. Raises HeaderError, UsageError."""
    start = read_start(path, 64)
    readers = {NPY: read_npy, NRRD: read_nrrd, ENVI: read_envi} | dict.fromkeys(TIFFS, read_tiff)
    for magic, read in readers.items():
        if start.startswith(magic):
            return read(path)
    if path.lower().endswith((".mhd", ".mha")):
        return read_metaimage(path)
    if (beside := header_beside(path)) is not None and read_start(beside, 4) == ENVI:
        return read_envi(beside)
    raise HeaderError("is not an NPY, NRRD, MetaImage, ENVI or TIFF file")


def read_start(path: str, size: int = LARGEST_HEADER) -> bytes:
    """At most ``size`` bytes. Raises UsageError if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def integers(what: str, text: str) -> Shape:
    """Non-negative integers separated by spaces. Raises HeaderError."""
    words = text.split()
    if not words or not all(word.isascii() and word.isdigit() and len(word) < 20 for word in words):
        raise HeaderError(f"{what} is {text[:100]!r}")
    return tuple(map(int, words))


def _zarr_types(format_name: str) -> dict[str, str]:
    """Zarr's names of the types that a format can have, by the format's in lower case."""
    names = TYPE_NAMES[format_name].items()
    return {name.lower(): np.dtype(code).name for code, name in names if code != "b1"}


def data_type(what: str, name: str, types: dict[str, str]) -> str:
    """Raises HeaderError for a type that is not in the table."""
    if (found := types.get(" ".join(name.lower().split()))) is None:
        raise HeaderError(f"{what} {name[:100]!r} has no counterpart in Zarr")
    return found


def fields(text: str, separator: str) -> dict[str, str]:
    """Names in lower case, and values, from one pair a line; the last of equal names counts."""
    found = {}
    for line in text.splitlines():
        name, between, value = line.partition(separator)
        if between and not line.startswith("#"):
            found[" ".join(name.lower().split())] = value.strip()
    return found


NPY = b"\x93NUMPY"


def read_npy(path: str) -> Header:
    """Raises HeaderError."""
    try:
        header = parse_npy(io.BytesIO(read_start(path)).read)
        return Header(header.shape, data_type_json(header.dtype))
    except Exception as error:  # of the tokenizer of Python, too
        raise HeaderError(f"NPY header: {reason_of(error)[:200]}") from error


NRRD = b"NRRD"

_NRRD_TYPES = {"float": "float32", "double": "float64"} | {
    name: f"{sign}int{bits}"
    for bits, short, words in (
        (8, "char", ("char",)),
        (16, "short", ("short", "short int")),
        (32, "int", ("int",)),
        (64, "longlong", ("long long", "long long int")),
    )
    for sign, before in (("", ""), ("", "signed "), ("u", "unsigned "))
    for name in (
        *(f"{sign}int{bits}", f"{sign}int{bits}_t", sign + short),
        *(before + word for word in words),
    )
}
# Whether it has a sign depends on the machine that wrote it, so NRRD does not allow it.
del _NRRD_TYPES["char"]


def read_nrrd(path: str) -> Header:
    """Raises HeaderError."""
    start = read_start(path).replace(b"\r\n", b"\n")
    header = fields(start.partition(b"\n\n")[0].decode("utf-8", "replace"), ":")
    sizes = integers("sizes", header.get("sizes", ""))
    if integers("dimension", header.get("dimension", "")) != (len(sizes),):
        raise HeaderError(f"there are {len(sizes)} sizes for dimension {header['dimension']!r}")
    return Header(sizes[::-1], data_type("type", header.get("type", ""), _NRRD_TYPES))


_META_TYPES = _zarr_types("MetaImage") | {"met_long_long": "int64", "met_ulong_long": "uint64"}
_META_END = b"ElementDataFile"


def read_metaimage(path: str) -> Header:
    """Channels, where there are several, are the last axis. Raises HeaderError."""
    start = read_start(path)
    if _META_END not in start:
        raise HeaderError("there is no ElementDataFile")
    header = fields(start.partition(_META_END)[0].decode("utf-8", "replace"), "=")
    sizes = integers("DimSize", header.get("dimsize", ""))
    if integers("NDims", header.get("ndims", "")) != (len(sizes),):
        raise HeaderError(f"DimSize has {len(sizes)} numbers, NDims is {header['ndims']}")
    channels = integers("ElementNumberOfChannels", header.get("elementnumberofchannels", "1"))
    shape = sizes[::-1] if channels == (1,) else (*sizes[::-1], channels[0])
    return Header(shape, data_type("ElementType", header.get("elementtype", ""), _META_TYPES))


ENVI = b"ENVI"

_ENVI_TYPES = _zarr_types("ENVI")
_ENVI_AXES = {
    "bsq": ("bands", "lines", "samples"),
    "bil": ("lines", "bands", "samples"),
    "bip": ("lines", "samples", "bands"),
}
_BRACES = re.compile(r"\{[^}]*\}")


def header_beside(path: str) -> str | None:
    """The header of a data file: ``x.img.hdr``, or ``x.hdr``; None if there is none."""
    for candidate in (f"{path}.hdr", f"{os.path.splitext(path)[0]}.hdr"):
        if candidate != path and os.path.isfile(candidate):
            return candidate
    return None


def read_envi(path: str) -> Header:
    """In the order in which the elements lie; one band is no axis. Raises HeaderError."""
    text = read_start(path).decode("utf-8", "replace")
    header = fields(_BRACES.sub("", text), "=")
    interleave = header.get("interleave", "bsq").lower()
    if interleave not in _ENVI_AXES:
        raise HeaderError(f"interleave is {interleave[:100]!r}")
    extents = {
        name: integers(name, header.get(name, "1" if name == "bands" else ""))[0]
        for name in ("bands", "lines", "samples")
    }
    axes = [axis for axis in _ENVI_AXES[interleave] if axis != "bands" or extents[axis] != 1]
    shape = tuple(extents[axis] for axis in axes)
    return Header(shape, data_type("data type", header.get("data type", ""), _ENVI_TYPES))


TIFFS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_MEMORY = 1 << 30


def read_tiff(path: str) -> Header:
    """Shape and type of the first series of pages. Raises HeaderError."""
    if find_spec("tifffile") is None:
        raise HeaderError(f"TIFF needs an optional package, {to_install('tiff')}")
    try:
        found = isolated("zarrfs.library.headers.tiff_file").decode(
            {"path": os.path.abspath(path)}, b"", size=LARGEST_HEADER, memory=_MEMORY, exact=False
        )
    except DecodeError as error:
        raise HeaderError(f"TIFF: {reason_of(error)[:200]}") from error
    shape, data_type = json.loads(found)
    return Header(tuple(shape), data_type)
