"""The data types of the Zarr v3 core specification."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import DecodeError
from zarrfs.format.data_type import DataType, integer_limits
from zarrfs.format.data_types.fill_value import (
    ComplexFill,
    IntegerFill,
    parse_bool,
    parse_float,
    parse_raw,
)


def _check_bool(elements: NDArray[Any]) -> None:
    if elements.size and elements.view(np.uint8).max() > 1:
        raise DecodeError("a bool element is neither 0 nor 1")


def raw_bits(name: str) -> DataType | None:
    """The type ``r<N>``: N bits, a positive multiple of 8, without further meaning."""
    digits = name.removeprefix("r")
    if digits == name or not digits.isascii() or not digits.isdigit() or digits.startswith("0"):
        return None
    bits = int(digits)
    # numpy limits the size of an element.
    if bits % 8 or bits // 8 > 2**31 - 1:
        return None
    dtype = np.dtype(f"V{bits // 8}")
    return DataType(name, dtype, parse_raw, has_byte_order=False)


def _integer(name: str) -> DataType:
    # By its code: to NumPy, a type that `newbyteorder` made is not built in.
    dtype = np.dtype(np.dtype(name).newbyteorder("<").str)
    limits = integer_limits(8 * dtype.itemsize, signed=dtype.kind == "i")
    return DataType(name, dtype, IntegerFill(*limits))


CORE_DATA_TYPES: dict[str, DataType] = {
    data_type.name: data_type
    for data_type in (
        DataType("bool", np.dtype("?"), parse_bool, check=_check_bool),
        *(_integer(f"int{bits}") for bits in (8, 16, 32, 64)),
        *(_integer(f"uint{bits}") for bits in (8, 16, 32, 64)),
        DataType("float16", np.dtype("<f2"), parse_float),
        DataType("float32", np.dtype("<f4"), parse_float),
        DataType("float64", np.dtype("<f8"), parse_float),
        DataType("complex64", np.dtype("<c8"), ComplexFill(np.dtype("<f4"))),
        DataType("complex128", np.dtype("<c16"), ComplexFill(np.dtype("<f8"))),
    )
}
"""Core types by name; ``r<N>`` is matched by `raw_bits`."""
