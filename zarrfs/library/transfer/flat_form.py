"""How elements lie in a file: bare or behind the header of a format, in which order."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy

from zarrfs.errors import UnsupportedError, UsageError, reason_of
from zarrfs.format.chunk_grid import Shape
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible
from zarrfs.views.headers.registry import FORMATS, find_format, is_format

_MAGIC = 8
_BARE = ("bin", "raw", "dat", "img", "data")
_SYNONYMS = {".tiff": ".tif", ".hdf5": ".h5", ".hdf": ".h5", ".nc4": ".nc", ".fit": ".fits",
             ".wave": ".wav", ".hdr": ".bin.hdr", ".xdmf": ".xmf"}  # fmt: skip
# numpy's own limit; the headers that it writes have hundreds of bytes.
_LARGEST_NPY_HEADER = 10_000


@dataclass(frozen=True, slots=True)
class FlatForm:
    """
    container : ``bin``, elements and nothing else, or the name of a format, or of a file of a
        group, in `zarrfs.views.headers.registry`.
    byteorder, order : of the elements; see `FlatConfig`. A format that has only one byte
        order takes that.
    """

    container: str = "bin"
    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"

    @property
    def layout(self) -> FlatConfig:
        return FlatConfig(self.byteorder, self.order)

    def form(self, array: Described) -> Form:
        """The bytes around the elements. Raises UnsupportedError with the format's reason."""
        if self.container == "bin":
            return Form(b"", self.layout)
        try:
            return find_format(self.container)(array)()
        except Inexpressible as error:
            raise UnsupportedError(self.container, str(error)) from error


def by_extension(file: str) -> str:
    """The container that the name of a file asks for.

    Raises UsageError for the name of a header, which would hold no elements, and for an extension
    that no format has.
    """
    name = file.lower()
    for synonym, extension in _SYNONYMS.items():
        name = name.removesuffix(synonym) + extension if name.endswith(synonym) else name
    if name.endswith(".ome.tif"):
        return "image.ome.tif"
    # The longest first: .chunked.h5 before .h5.
    for extension, row in sorted(FORMATS.items(), key=lambda item: -len(item[0])):
        if name.endswith(f".{extension}"):
            if row.beside:
                raise UsageError(
                    f"{file}: is the name of a header alone: export FILE.bin, then "
                    f"zarrfs header --format {extension}"
                )
            return extension
    stem, _, last = os.path.basename(name).rpartition(".")
    # Formats of other packages are looked for last, which takes time.
    if not stem.strip(".") or last in _BARE:
        return "bin"
    if is_format(last):
        return last
    raise UsageError(
        f"{file}: no format has the extension .{last}: --format names one, "
        "--format bin writes the elements alone"
    )


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """The header of an NPY file; ``size`` is its size in bytes."""

    shape: Shape
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    size: int

    @property
    def byteorder(self) -> Literal["little", "big"]:
        dtype = self.dtype
        while dtype.fields:
            # A byte order of its own for each field is more than can be said here.
            dtype = next(iter(dtype.fields.values()))[0]
        return "big" if dtype.base.byteorder == ">" else "little"


def parse_npy(read: Callable[[int], bytes]) -> NpyHeader:
    """The header at the beginning of a file.

    read : gives the next so many bytes, fewer at the file's end.

    Raises any exception for anything else, such as those of the tokenizer of Python.
    """
    start = read(_MAGIC)
    version = npy.read_magic(io.BytesIO(start))
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} is unknown")
    length = read(2 if version == (1, 0) else 4)
    nbytes = int.from_bytes(length, "little")
    if nbytes > _LARGEST_NPY_HEADER:
        raise ValueError(f"a header of {nbytes} bytes is too large")
    text = read(nbytes)
    parse = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    if version == (3, 0):
        # Only the encoding differs, and matters for names of fields alone.
        text = text.decode("utf-8").encode("latin1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that Python 2 wrote
        shape, fortran, dtype = parse(io.BytesIO(length + text))
    size = len(start) + len(length) + len(text)
    return NpyHeader(tuple(map(int, shape)), dtype, "F" if fortran else "C", size)


def read_npy_header(read: Callable[[int], bytes], name: str) -> NpyHeader:
    """As `parse_npy`; the elements of a pickle are refused, and nothing of it is loaded.

    Raises UsageError.
    """
    try:
        header = parse_npy(read)
    except Exception as error:
        raise UsageError(f"{name}: no NPY file: {reason_of(error)[:200]}") from error
    if header.dtype.hasobject:
        raise UsageError(f"{name}: holds Python objects, which are not read")
    return header
