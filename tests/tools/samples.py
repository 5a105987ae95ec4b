"""A hierarchy of small arrays of many types and ranks, no two axes of which are as long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

SHAPES = {1: (43,), 2: (11, 17), 3: (5, 11, 17), 4: (3, 5, 11, 17)}
NAMES = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x"), 4: ("t", "z", "y", "x")}
TYPES = {
    "b1": "bool",
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "u2": "uint16",
    "i4": "int32",
    "u4": "uint32",
    "i8": "int64",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}


def values(code: str, rank: int) -> NDArray:
    """The same for nobody who mixes up axes, bytes or signs."""
    shape = SHAPES[rank]
    number = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    if code == "b1":
        return number % 3 == 0
    dtype = np.dtype(code)
    if dtype.kind == "c":
        return (number + 1j * (number % 7 - 3)).astype(dtype)
    if dtype.kind == "f":
        return (number % 1999 - 500.25).astype(dtype)
    limits = np.iinfo(dtype)
    # From end to end of the range of the type.
    step = max(1, (int(limits.max) - int(limits.min)) // number.size)
    return (int(limits.min) + number.astype(object) * step % (2 ** (8 * dtype.itemsize))).astype(
        dtype
    )


def make(path: Path, *, named: bool = True) -> Path:
    """A group with an array ``u2_3`` and so on for each type and rank."""
    group = zarr.create_group(path)
    for rank, shape in SHAPES.items():
        for code in TYPES:
            data = values(code, rank)
            array = group.create_array(
                f"{code}_{rank}",
                shape=shape,
                chunks=tuple(max(2, n // 2) for n in shape),
                dtype=data.dtype,
                dimension_names=NAMES[rank] if named else None,
                attributes={"sample_rate": 8000, "title": "a sample", "units": "K"},
            )
            array[...] = data
    return path
