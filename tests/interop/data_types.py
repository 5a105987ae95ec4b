"""The core data types: what numpy calls them, and fill values with the bits they stand for."""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fill:
    """``value`` as it stands in JSON, and the little-endian bytes of such an element."""

    name: str
    value: Any
    bits: bytes


def _integer(dtype: str) -> tuple[Fill, ...]:
    kind = np.dtype(dtype)
    limits = np.iinfo(kind)
    values = {"zero": 0, "largest": int(limits.max), "smallest": int(limits.min), "42": 42}
    return tuple(
        Fill(name, value, value.to_bytes(kind.itemsize, "little", signed=kind.kind == "i"))
        for name, value in values.items()
    )


_QUIET = {2: 0x7E00, 4: 0x7FC00000, 8: 0x7FF8000000000000}
_INFINITY = {2: 0x7C00, 4: 0x7F800000, 8: 0x7FF0000000000000}


def _float(size: int) -> tuple[Fill, ...]:
    code = {2: "<e", 4: "<f", 8: "<d"}[size]
    sign = 1 << (8 * size - 1)
    bits = {
        "payload_nan": _QUIET[size] | 0x123,
        "negative_nan": _QUIET[size] | sign,
        "signalling_nan": _INFINITY[size] | 1,
    }
    return (
        Fill("zero", 0.0, struct.pack(code, 0.0)),
        Fill("fraction", -1.5, struct.pack(code, -1.5)),
        Fill("negative_zero", -0.0, struct.pack(code, -0.0)),
        Fill("nan", "NaN", _QUIET[size].to_bytes(size, "little")),
        Fill("infinity", "Infinity", _INFINITY[size].to_bytes(size, "little")),
        Fill("negative_infinity", "-Infinity", (_INFINITY[size] | sign).to_bytes(size, "little")),
        *(
            Fill(name, f"0x{value:0{2 * size}x}", value.to_bytes(size, "little"))
            for name, value in bits.items()
        ),
    )


def _complex(part: int) -> tuple[Fill, ...]:
    parts = {fill.name: fill for fill in _float(part)}
    pairs = (
        ("zero", "zero"),
        ("fraction", "infinity"),
        ("negative_zero", "nan"),
        ("zero", "negative_zero"),
        ("payload_nan", "negative_infinity"),
        ("signalling_nan", "negative_nan"),
    )
    return tuple(
        Fill(
            "zero" if real == imaginary == "zero" else f"{real}_and_{imaginary}",
            [parts[real].value, parts[imaginary].value],
            parts[real].bits + parts[imaginary].bits,
        )
        for real, imaginary in pairs
    )


NUMPY = {
    "bool": "?",
    **{f"int{8 * n}": f"<i{n}" for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}": f"<u{n}" for n in (1, 2, 4, 8)},
    **{f"float{8 * n}": f"<f{n}" for n in (2, 4, 8)},
    "complex64": "<c8",
    "complex128": "<c16",
}
"""The little-endian numpy type of each core data type with a number of bits of its own."""

FILLS: dict[str, tuple[Fill, ...]] = {
    "bool": (Fill("zero", False, b"\0"), Fill("true", True, b"\1")),
    **{name: _integer(dtype) for name, dtype in NUMPY.items() if np.dtype(dtype).kind in "iu"},
    **{f"float{8 * n}": _float(n) for n in (2, 4, 8)},
    "complex64": _complex(4),
    "complex128": _complex(8),
}
"""Fill values of each of them."""


def random_elements(
    data_type: str, shape: tuple[int, ...], random: np.random.Generator
) -> np.ndarray[Any, Any]:
    """Elements of any bits, NaN of every payload among them."""
    dtype = np.dtype(NUMPY[data_type])
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype("?")
    count = int(np.prod(shape, dtype=int))
    return np.frombuffer(random.bytes(count * dtype.itemsize), dtype).reshape(shape).copy()
