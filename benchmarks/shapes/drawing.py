"""A geometry from a seed: the same one on every machine and in every version of Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from benchmarks.shapes.geometry import Codec, Geometry

DATA_TYPES = (
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "float32",
    "float64",
    "complex64",
)

STYLES = {
    "any": 0.3,  # every aspect of array and chunk
    "time": 0.2,  # chunks span the first axis
    "strips": 0.15,  # chunks span all axes but the last, or nearly
    "narrow": 0.2,  # the innermost axis has 3 or 37 elements
    "cubes": 0.15,  # near-cubic chunks, powers of two
}
"""How often each is drawn."""

_SMALLEST_CHUNK, _LARGEST_CHUNK = 16 << 10, 16 << 20
_LARGEST_SHARD = 64 << 20


def draw(seed: int, size: int) -> Geometry:
    """The geometry of a seed, of about ``size`` bytes.

    Chunks have 16 KiB to 16 MiB, less where the array is small.
    """
    random = Random(seed)
    while True:
        geometry = _candidate(random, seed, size)
        if geometry is not None and _is_plausible(geometry, size):
            return geometry


def chunk_limits(size: int) -> tuple[int, int]:
    """Least and most bytes of a chunk in an array of ``size`` bytes.

    A quarter of it must have room to decode one.
    """
    return min(_SMALLEST_CHUNK, size // 64), min(_LARGEST_CHUNK, size // 16)


def _candidate(random: Random, seed: int, size: int) -> Geometry | None:
    rank = random.choices((1, 2, 3, 4, 5), (1, 2, 3, 2, 2))[0]
    data_type = random.choice(DATA_TYPES)
    style = random.choices(list(STYLES), list(STYLES.values()))[0]
    if rank == 1 and style != "any":
        return None
    item = np.dtype(data_type).itemsize
    low, high = chunk_limits(size)
    wanted = int(math.exp(random.uniform(math.log(low), math.log(high)))) // item
    shape = _shape(random, rank, size // item, narrow=style == "narrow")
    chunk = _chunk(random, shape, wanted, style)
    shard = None
    if random.random() < 1 / 3:
        shard = _shard(random, shape, chunk, min(_LARGEST_SHARD, size // 4) // item)
    return Geometry(
        seed=seed,
        style=style,
        data_type=data_type,
        shape=shape,
        chunk=chunk,
        shard=shard,
        codecs=tuple(_codecs(random, rank, item)),
        plane_axis=random.randrange(1, rank) if rank > 1 else None,
    )


def _is_plausible(geometry: Geometry, size: int) -> bool:
    """Whether somebody would store it: little of it is overhang, chunks are of a good size."""
    low, high = chunk_limits(size)
    return (
        low <= geometry.chunk_bytes <= high
        and 0.75 * size <= geometry.size <= 1.05 * size
        and geometry.decoded_bytes <= 1.5 * geometry.size
    )


def _shape(random: Random, rank: int, elements: int, *, narrow: bool) -> tuple[int, ...]:
    inner = (random.choice((3, 37)),) if narrow else ()
    outer = _lengths(random, rank - len(inner), elements // math.prod(inner))
    if random.random() < 0.3:
        outer = [_power_of_two(length) for length in outer]
    # Rounding leaves the product beside what is wanted; the longest axis makes up for it.
    longest = outer.index(max(outer))
    rest = math.prod(outer) // outer[longest] * math.prod(inner)
    outer[longest] = max(1, elements // rest)
    return (*outer, *inner)


def _lengths(random: Random, rank: int, elements: int) -> list[int]:
    """Lengths of any aspect whose product is about ``elements``."""
    weights = [random.uniform(0.2, 1.8) for _ in range(rank)]
    total = sum(weights)
    return [max(1, round(elements ** (weight / total))) for weight in weights]


def _chunk(random: Random, shape: Sequence[int], elements: int, style: str) -> tuple[int, ...]:
    """A chunk of about that many elements, no longer than the array along any axis."""
    rank = len(shape)
    fixed: dict[int, int] = {}
    match style:
        case "time":
            fixed = {0: shape[0]}
        case "strips":
            # The narrow last axis comes last in line for elements.
            fixed = {rank - 1: min(shape[-1], random.randint(4, 64))}
            left = elements // fixed[rank - 1]
            for axis in reversed(range(rank - 1)):
                fixed[axis] = max(1, min(shape[axis], left))
                left //= fixed[axis]
        case "narrow":
            fixed = {rank - 1: shape[-1]}
    free = [axis for axis in range(rank) if axis not in fixed]
    left = max(1, elements // math.prod(fixed.values()))
    weights = {axis: 1.0 if style == "cubes" else random.uniform(0.05, 1.5) for axis in free}
    chunk = dict(fixed)
    # Shortest axes first: what they have no room for goes to the others.
    for axis in sorted(free, key=lambda axis: shape[axis]):
        share = left ** (weights[axis] / sum(weights.values()))
        length = _power_of_two(share) if style == "cubes" else round(share)
        chunk[axis] = max(1, min(shape[axis], length))
        left = max(1, left // chunk[axis])
        del weights[axis]
    if style != "cubes" and random.random() < 0.5:
        # Chunks that divide the array evenly, or nearly.
        for axis, length in chunk.items():
            chunk[axis] = -(-shape[axis] // -(-shape[axis] // length))
    return tuple(chunk[axis] for axis in range(rank))


def _shard(
    random: Random, shape: Sequence[int], chunk: Sequence[int], elements: int
) -> tuple[int, ...] | None:
    """1 to 8 inner chunks along each axis, no more elements than that; None where one would be."""
    shard = list(chunk)
    for axis in random.sample(range(len(shape)), len(shape)):
        most = min(8, -(-shape[axis] // chunk[axis]), elements // math.prod(shard))
        shard[axis] *= random.randint(1, max(1, most))
    return tuple(shard) if shard != list(chunk) else None


def _codecs(random: Random, rank: int, item: int) -> Iterator[Codec]:
    if rank > 1 and random.random() < 0.2:
        order = random.sample(range(rank), rank)
        yield {"name": "transpose", "configuration": {"order": order}}
    if item == 1:
        yield {"name": "bytes"}
    else:
        endian = "big" if random.random() < 0.2 else "little"
        yield {"name": "bytes", "configuration": {"endian": endian}}
    match random.choices(("blosc", "zstd", "gzip", "none"), (4, 3, 1, 2))[0]:
        case "blosc":
            settings = {
                "cname": random.choice(("lz4", "lz4", "zstd", "zstd", "blosclz", "zlib", "lz4hc")),
                "clevel": random.choice((1, 3, 5)),
                "shuffle": random.choice(("shuffle", "bitshuffle", "noshuffle")),
                "typesize": item,
                "blocksize": 0,
            }
            yield {"name": "blosc", "configuration": settings}
        case "zstd":
            settings = {"level": random.choice((1, 3, 5)), "checksum": random.random() < 0.3}
            yield {"name": "zstd", "configuration": settings}
        case "gzip":
            yield {"name": "gzip", "configuration": {"level": random.choice((1, 5))}}
    if random.random() < 0.25:
        yield {"name": "crc32c"}


def _power_of_two(length: float) -> int:
    return 1 << max(0, round(math.log2(max(1, length))))
