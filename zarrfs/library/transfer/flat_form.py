"""How elements lie in a flat file: bare or behind an NPY header, in which order."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy

from zarrfs.errors import UnsupportedError, UsageError
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.data_type import DataType
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.npy import npy_header

_MAGIC = 8
# numpy's own limit; the headers that it writes have hundreds of bytes.
_LARGEST_NPY_HEADER = 10_000


@dataclass(frozen=True, slots=True)
class FlatForm:
    """
    container : ``bin``, elements and nothing else, or ``npy``.
    byteorder, order : of the elements; see `FlatConfig`.
    """

    container: Literal["bin", "npy"] = "bin"
    byteorder: Literal["little", "big"] = "little"
    order: Literal["C", "F"] = "C"

    @property
    def layout(self) -> FlatConfig:
        return FlatConfig(self.byteorder, self.order)

    def header(self, data_type: DataType, shape: Shape) -> bytes:
        """What comes before the elements. Raises UnsupportedError where there is no such."""
        if self.container == "bin":
            return b""
        header = npy_header(data_type.dtype, shape, self.byteorder, self.order)
        if header is None:
            raise UnsupportedError("npy", f"has no form for elements of {data_type.name}")
        return header


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """What an NPY file says of itself; ``size`` of its header in bytes."""

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


def read_npy_header(read: Callable[[int], bytes], name: str) -> NpyHeader:
    """The header at the beginning of a file.

    read : gives the next so many bytes, fewer at the file's end.

    The elements of a pickle are refused, and nothing of it is loaded. Raises UsageError.
    """
    start = read(_MAGIC)
    try:
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
    except (ValueError, TypeError, RecursionError, MemoryError, UnicodeError) as error:
        raise UsageError(f"{name}: no NPY file: {' '.join(str(error).split())[:200]}") from error
    if dtype.hasobject:
        raise UsageError(f"{name}: holds Python objects, which are not read")
    size = len(start) + len(length) + len(text)
    return NpyHeader(tuple(map(int, shape)), dtype, "F" if fortran else "C", size)
