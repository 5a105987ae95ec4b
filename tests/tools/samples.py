"""A hierarchy of small arrays of many types and ranks, no two axes of which are as long."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import zarr
from numpy.typing import NDArray

SHAPES = {1: (43,), 2: (11, 17), 3: (13, 11, 17), 4: (3, 13, 11, 17)}
NAMES = {1: ("x",), 2: ("y", "x"), 3: ("z", "y", "x"), 4: ("t", "z", "y", "x")}
TYPES = ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
# Options of a mount.
ORDERS = {"C": (), "F, big-endian, own names": ("order=F", "byteorder=big", "names=node")}


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


KINDS = tuple(product(TYPES, SHAPES))


def make(path: Path, kinds: Iterable[tuple[str, int]] = KINDS) -> Path:
    """A group with an array ``u2_3`` and so on for each type and rank."""
    group = zarr.create_group(path)
    for code, rank in kinds:
        data = values(code, rank)
        group.create_array(
            f"{code}_{rank}",
            data=data,
            chunks=tuple(max(2, n // 2) for n in data.shape),
            dimension_names=NAMES[rank],
            attributes={"sample_rate": 8000, "title": "a sample", "units": "K"},
        )
    return path
