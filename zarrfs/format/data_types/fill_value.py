"""Fill values in their JSON forms, read bit for bit.

Follows the Zarr v3 core specification, section "Fill value". If a known implementation writes
another form with the same meaning, that form is read too.
"""

from __future__ import annotations

import base64
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

_HEXADECIMAL = re.compile("[0-9a-fA-F]*", re.ASCII)
_NAMED_FLOATS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def parse_bool(value: Any, dtype: np.dtype[Any]) -> bytes:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return bytes([value])


@dataclass(frozen=True, slots=True)
class IntegerFill:
    """A JSON integer from ``low`` to ``high``; ``1.0`` counts as 1."""

    low: int
    high: int

    def __call__(self, value: Any, dtype: np.dtype[Any]) -> bytes:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise ValueError("expected an integer")
        if not self.low <= value <= self.high:
            raise ValueError(f"expected an integer from {self.low} to {self.high}")
        return np.array(int(value), dtype).tobytes()


def parse_time(value: Any, dtype: np.dtype[Any]) -> bytes:
    """``"NaT"``, or the count of the type's units as an integer."""
    if value == "NaT":
        value = -(2**63)
    return IntegerFill(-(2**63), 2**63 - 1)(value, np.dtype("<i8"))


def parse_float(value: Any, dtype: np.dtype[Any]) -> bytes:
    """A number, ``"NaN"``, ``"Infinity"``, ``"-Infinity"``, or ``"0x…"`` with the exact bits.

    The hexadecimal digits are the big-endian bytes of the element. They never pass through a
    floating-point register, which would turn a signalling NaN into a quiet one.
    """
    if isinstance(value, str):
        if value in _NAMED_FLOATS:
            return _float_bytes(float(_NAMED_FLOATS[value]), dtype)
        return parse_hexadecimal(value, dtype)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError('expected a number, "NaN", "Infinity", "-Infinity" or "0x…"')
    try:
        return _float_bytes(float(value), dtype)
    except OverflowError as error:
        raise ValueError("is larger than any float") from error


def _float_bytes(value: float, dtype: np.dtype[Any]) -> bytes:
    with np.errstate(over="ignore"):
        element = np.array(value, np.float64).astype(dtype)
    if dtype.kind != "f":
        # Some small floats lack NaN, infinities or zero, and convert them to another value.
        taken = float(element.astype(np.float64))
        if math.isnan(value) != math.isnan(taken) or math.isinf(value) != math.isinf(taken):
            raise ValueError(f"{dtype.name} has no {value}")
    return element.tobytes()


def parse_hexadecimal(value: str, dtype: np.dtype[Any]) -> bytes:
    """``"0x…"``, exactly two digits a byte, most significant first."""
    digits = value.removeprefix("0x")
    if digits == value or len(digits) != 2 * dtype.itemsize:
        raise ValueError(f'"{value}" is neither a float nor "0x" with {2 * dtype.itemsize} digits')
    if not _HEXADECIMAL.fullmatch(digits):
        raise ValueError(f'"{value}" is not "0x" with {2 * dtype.itemsize} hexadecimal digits')
    return bytes.fromhex(digits)[::-1]


@dataclass(frozen=True, slots=True)
class ComplexFill:
    """A pair of values that `parse_float` reads for ``part``, or one real number."""

    part: np.dtype[Any]

    def __call__(self, value: Any, dtype: np.dtype[Any]) -> bytes:
        if not isinstance(value, list | tuple):
            value = (value, 0.0)
        if len(value) != 2:
            raise ValueError("expected a pair of real and imaginary part")
        return b"".join(parse_float(v, self.part) for v in value)


def from_base64(text: str, what: str = "base64") -> bytes:
    """Raises ValueError that says ``what`` was expected."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"expected {what}") from error


def parse_raw(value: Any, dtype: np.dtype[Any]) -> bytes:
    """A list of bytes as in the specification, or base64 as TensorStore writes it."""
    if isinstance(value, str):
        return from_base64(value, "a list of bytes or base64")
    if isinstance(value, list | tuple) and all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 256 for v in value
    ):
        return bytes(value)
    raise ValueError("expected a list of bytes or base64")


def parse_padded_bytes(value: Any, dtype: np.dtype[Any]) -> bytes:
    """As `parse_raw`, with zeros appended to a value shorter than the type."""
    return _padded(parse_raw(value, dtype), dtype)


def parse_utf32(value: Any, dtype: np.dtype[Any]) -> bytes:
    """A string of at most as many code points as ``dtype`` has."""
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return _padded(value.encode("utf-32-le", "surrogatepass"), dtype)


def _padded(data: bytes, dtype: np.dtype[Any]) -> bytes:
    # bytes() of zeros is memory that is not written to, and so takes none.
    return data.ljust(dtype.itemsize, b"\0") if data else bytes(dtype.itemsize)
