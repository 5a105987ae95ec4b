"""Integers and floats of few bits, and complex numbers of any float.

https://github.com/zarr-developers/zarr-extensions/tree/main/data-types

A type of less than 8 bits is stored in a byte whose upper bits are arbitrary. In memory the upper
bits are canonical: copies of the sign for signed integers, zero for all other types. `ml_dtypes`
has the floats, with the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from zarrfs.format.data_type import DataType, integer_limits
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.data_types.fill_value import ComplexFill, IntegerFill, parse_float


@dataclass(frozen=True, slots=True)
class LowBits:
    """Keeps the low ``bits`` of every byte, and fills the others with the sign or with zero."""

    bits: int
    signed: bool

    def __call__(self, elements: NDArray[Any]) -> NDArray[Any]:
        raw = np.ascontiguousarray(elements).reshape(-1).view(np.uint8)
        low: NDArray[Any] = raw & np.uint8((1 << self.bits) - 1)
        if self.signed:
            unused = 8 - self.bits
            low = (raw << np.uint8(unused)).view(np.int8) >> np.int8(unused)
        return low.view(elements.dtype).reshape(elements.shape)


def integer(name: str, configuration: Mapping[str, Any]) -> DataType:
    """``int2``, ``int4``, ``uint2``, ``uint4``: one int8 or uint8 each in memory."""
    bits, signed = int(name[-1]), name.startswith("int")
    return DataType(
        name,
        np.dtype("i1" if signed else "u1"),
        IntegerFill(*integer_limits(bits, signed=signed)),
        canonical=LowBits(bits, signed),
        bits=bits,
    )


def float_(name: str, configuration: Mapping[str, Any]) -> DataType:
    """The floats of `ml_dtypes`."""
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    bits = int(ml_dtypes.finfo(dtype).bits)  # type: ignore[no-untyped-call]
    return DataType(
        name,
        dtype,
        parse_float,
        canonical=LowBits(bits, signed=False) if bits < 8 else None,
        bits=bits if bits < 8 else None,
        words=np.dtype("<u2") if bits == 16 else None,
    )


def complex_(name: str, configuration: Mapping[str, Any]) -> DataType:
    """``complex_<float>``: two floats; fields ``real`` and ``imag`` if numpy has no such type."""
    part_name = name.removeprefix("complex_")
    part = CORE_DATA_TYPES.get(part_name) or float_(part_name, {})
    native = {"float32": "<c8", "float64": "<c16"}.get(part_name)
    return DataType(
        name,
        _pair(part.dtype) if native is None else np.dtype(native),
        ComplexFill(part.dtype),
        canonical=part.canonical,
        bits=part.bits,
        words=None if part.words is None else _pair(part.words),
    )


def _pair(part: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("real", part), ("imag", part)])
