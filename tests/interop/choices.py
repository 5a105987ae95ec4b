"""What arrays are combined from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .covering import Row
from .data_types import FILLS, NUMPY
from .documents import CRC32C, Json, array_bytes, blosc, chunk_keys, gzip, transpose, zstd
from .shardings import SHARDINGS, cycled
from .spec import Shape, Spec


@dataclass(frozen=True)
class Grid:
    """Each chunk shape divides the one before it; ``middle`` is used where shards are nested."""

    shape: Shape
    stored: Shape
    middle: Shape
    inner: Shape


GRIDS = {
    "scalar": Grid((), (), (), ()),
    "even_1d": Grid((24,), (8,), (4,), (2,)),
    "ragged_1d": Grid((37,), (12,), (6,), (3,)),
    "overhung_1d": Grid((5,), (16,), (8,), (4,)),
    "empty_1d": Grid((0,), (4,), (4,), (2,)),
    "ragged_2d": Grid((13, 10), (8, 6), (4, 6), (2, 3)),
    "single_elements_2d": Grid((3, 4), (1, 1), (1, 1), (1, 1)),
    "ragged_3d": Grid((7, 9, 11), (4, 6, 8), (2, 6, 4), (2, 3, 2)),
    "empty_3d": Grid((4, 0, 5), (2, 3, 4), (2, 3, 2), (1, 3, 2)),
    "ragged_4d": Grid((3, 5, 4, 6), (2, 4, 4, 4), (2, 2, 4, 4), (1, 2, 2, 4)),
    "ragged_5d": Grid((3, 2, 5, 3, 4), (2, 2, 4, 2, 4), (2, 1, 4, 2, 2), (1, 1, 2, 1, 2)),
}

KEYS = {
    f"{name}{separator}": chunk_keys(name, separator)
    for name in ("default", "v2")
    for separator in "/."
}

Chain = Callable[[int, int], list[Json]]
"""From the rank and the size of an element to the codecs of a chunk."""

CHAINS: dict[str, Chain] = {
    "little": lambda rank, size: [array_bytes()],
    "big": lambda rank, size: [array_bytes("big")],
    "gzip": lambda rank, size: [array_bytes(), gzip()],
    "zstd": lambda rank, size: [array_bytes(), zstd()],
    "zstd_checksum_crc32c": lambda rank, size: [array_bytes(), zstd(checksum=True), CRC32C],
    "blosc": lambda rank, size: [array_bytes(), blosc(typesize=size)],
    "big_blosc_bits": lambda rank, size: [
        array_bytes("big"),
        blosc("zstd", "bitshuffle", typesize=size),
    ],
    "crc32c": lambda rank, size: [array_bytes(), CRC32C],
    "gzip_zstd": lambda rank, size: [array_bytes(), gzip(), zstd()],
    "crc32c_gzip": lambda rank, size: [array_bytes(), CRC32C, gzip(9)],
    "transposed": lambda rank, size: [transpose(cycled(rank)), array_bytes()],
    "reversed_big_gzip": lambda rank, size: [
        transpose(range(rank)[::-1]),
        array_bytes("big"),
        gzip(),
    ],
    "transposed_twice_zstd": lambda rank, size: [
        transpose(cycled(rank)),
        transpose(range(rank)[::-1]),
        array_bytes(),
        zstd(),
    ],
}

FACTORS = {
    "data_type": list(NUMPY),
    # Number of the data type's fill value; not every type has four.
    "fill": [0, 1, 2, 3],
    "grid": list(GRIDS),
    "keys": list(KEYS),
    "chain": list(CHAINS),
    "sharding": list(SHARDINGS),
}


def spec_of(row: Row) -> Spec:
    grid = GRIDS[row["grid"]]
    fills = FILLS[row["data_type"]]
    rank, size = len(grid.shape), np.dtype(NUMPY[row["data_type"]]).itemsize
    inside = CHAINS[row["chain"]](rank, size)
    return Spec(
        data_type=row["data_type"],
        fill=fills[row["fill"] % len(fills)],
        shape=grid.shape,
        stored=grid.stored,
        inner=grid.stored if row["sharding"] == "none" else grid.inner,
        keys=KEYS[row["keys"]],
        codecs=tuple(SHARDINGS[row["sharding"]](grid.middle, grid.inner, inside)),
    )
