"""``reshape`` and ``squeeze``: the same elements in the same order, in another shape.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape
https://docs.rs/zarrs/latest/zarrs/array/codec/array_to_array/squeeze/
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec import Chunk, ChunkSpec

Entry = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReshapeCodec:
    """Each entry is a length, -1 for the rest, or the input axes whose product is the length."""

    shape: tuple[Entry, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple):
            raise ValueError("shape must be a list")
        axes: list[int] = []
        for entry in self.shape:
            if isinstance(entry, tuple):
                axes.extend(entry)
            elif isinstance(entry, bool) or not isinstance(entry, int) or entry == 0:
                raise ValueError(f"shape cannot have {entry!r}")
            elif entry < -1:
                raise ValueError(f"shape cannot have {entry}")
        if self.shape.count(-1) > 1:
            raise ValueError("-1 may stand once")
        if any(isinstance(a, bool) or not isinstance(a, int) or a < 0 for a in axes):
            raise ValueError("input axes must be integers from 0")
        if any(a >= b for a, b in pairwise(axes)):
            raise ValueError("input axes must increase")

    def axis_order(self, rank: int) -> None:
        return None

    def bind(self, spec: ChunkSpec) -> BoundReshape:
        shape = [self._length(entry, spec.shape) for entry in self.shape]
        if -1 in shape:
            known = -math.prod(shape)
            if known == 0 or spec.elements % known:
                raise ValueError(f"cannot reshape {list(spec.shape)} to {shape}")
            shape[shape.index(-1)] = spec.elements // known
        if math.prod(shape) != spec.elements:
            raise ValueError(f"cannot reshape {list(spec.shape)} to {shape}")
        for position, entry in enumerate(self.shape):
            if isinstance(entry, tuple) and entry:
                _check_aligned(spec.shape, shape, entry, position)
        return BoundReshape(spec.shape, spec._replace(shape=tuple(shape)))

    def _length(self, entry: Entry, shape: Shape) -> int:
        if isinstance(entry, int):
            return entry
        if any(axis >= len(shape) for axis in entry):
            raise ValueError(f"the chunk has no axes {list(entry)}")
        return math.prod(shape[axis] for axis in entry)


def _check_aligned(shape: Shape, result: list[int], axes: tuple[int, ...], at: int) -> None:
    before = math.prod(result[:at]) == math.prod(shape[: axes[0]])
    behind = math.prod(result[at + 1 :]) == math.prod(shape[axes[-1] + 1 :])
    if not before or not behind:
        raise ValueError(f"entry {at} of shape does not hold the coordinates of {list(axes)}")


@dataclass(frozen=True, slots=True)
class SqueezeCodec:
    """Drops the axes of length 1; if all axes have length 1, one stays."""

    def axis_order(self, rank: int) -> None:
        return None

    def bind(self, spec: ChunkSpec) -> BoundReshape:
        shape = tuple(length for length in spec.shape if length != 1) or (1,)
        return BoundReshape(spec.shape, spec._replace(shape=shape))


@dataclass(frozen=True, slots=True)
class BoundReshape:
    decoded_shape: Shape
    encoded: ChunkSpec

    def decode(self, chunk: Chunk) -> Chunk:
        return chunk.reshape(self.decoded_shape)

    def encode(self, chunk: Chunk) -> Chunk:
        return chunk.reshape(self.encoded.shape)
