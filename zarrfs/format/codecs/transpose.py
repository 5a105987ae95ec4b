"""``transpose``: permutes the axes of a chunk.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/index.html
"""

from __future__ import annotations

from dataclasses import dataclass

from zarrfs.format.codec import Chunk, ChunkSpec

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TransposeCodec:
    """Encoded axis ``a`` is decoded axis ``order[a]``."""

    order: Order

    def axis_order(self, rank: int) -> Order:
        if sorted(self.order) != list(range(rank)):
            raise ValueError(f"order {list(self.order)} is not a permutation of {rank} axes")
        return self.order

    def bind(self, spec: ChunkSpec) -> BoundTranspose:
        order = self.axis_order(len(spec.shape))
        inverse = tuple(sorted(range(len(order)), key=order.__getitem__))
        encoded = spec._replace(shape=tuple(spec.shape[axis] for axis in order))
        return BoundTranspose(encoded, order, inverse)


@dataclass(frozen=True, slots=True)
class BoundTranspose:
    encoded: ChunkSpec
    order: Order
    inverse: Order

    def decode(self, chunk: Chunk) -> Chunk:
        return chunk.transpose(self.inverse)

    def encode(self, chunk: Chunk) -> Chunk:
        return chunk.transpose(self.order)
