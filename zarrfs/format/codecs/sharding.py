"""``sharding_indexed``: inner chunks one after another, with an index.

https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html

This codec decodes shards that are whole in memory. Nothing else is possible behind a codec whose
output has no separate parts. If inner chunks can be read on their own,
`zarrfs.format.chunk_layout` describes how, and this codec is not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.codec import Buffer, Chunk, ChunkSpec, SizeBound
from zarrfs.format.copying import copy_elements
from zarrfs.format.pipeline import ChunkCodec, CodecPipeline
from zarrfs.format.shard_index import IndexCodec, IndexLocation


class ShardingCodec(NamedTuple):
    """``chunk_shape`` is that of the inner chunks, in the axis order of the shard."""

    chunk_shape: Shape
    codecs: CodecPipeline
    index_codecs: CodecPipeline
    index_location: IndexLocation = "end"

    def counts(self, shard_shape: Shape) -> Shape:
        """Inner chunks along each axis. Raises ValueError if they do not fit evenly."""
        if len(shard_shape) != len(self.chunk_shape) or any(
            s % c for s, c in zip(shard_shape, self.chunk_shape, strict=True)
        ):
            raise ValueError(
                f"inner chunks {list(self.chunk_shape)} do not divide shards {list(shard_shape)}"
            )
        return tuple(s // c for s, c in zip(shard_shape, self.chunk_shape, strict=True))

    def bind_index(self, shard_shape: Shape) -> IndexCodec:
        return IndexCodec.bind(self.counts(shard_shape), self.index_location, self.index_codecs)

    def bind(self, spec: ChunkSpec) -> BoundSharding:
        inner = ChunkSpec(self.chunk_shape, spec.data_type, spec.fill)
        return BoundSharding(spec, self.codecs.bind(inner), self.bind_index(spec.shape))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BoundSharding:
    spec: ChunkSpec
    inner: ChunkCodec
    index: IndexCodec
    is_memory_layout = False

    @property
    def encoded(self) -> SizeBound:
        return self.index.shard_bound(self.inner.encoded)

    def decode(self, data: Buffer) -> Chunk:
        view, codec = memoryview(data), self.index
        entries = codec.decode(view[codec.offset :][: codec.size], len(view))
        shard = np.empty(self.spec.shape, self.spec.dtype)
        for index, part in self._parts(shard):
            where = entries.locate(index, self.inner.encoded.maximum)
            if where is None:
                self.spec.fill_into(part)
            else:
                copy_elements(self.inner.decode(view[where[0] : where[0] + where[1]]), part)
        return shard

    def _parts(self, shard: Chunk) -> Iterator[tuple[Index, Chunk]]:
        shape = self.inner.spec.shape
        for index in product(*map(range, self.index.counts)):
            where = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, shape, strict=True))
            yield index, shard[where]

    def encode(self, chunk: Chunk) -> Buffer:
        lengths = np.zeros(self.index.counts, np.int64)
        parts: list[Buffer] = []
        for index, part in self._parts(chunk):
            if not self.inner.spec.is_filled(part):
                parts.append(self.inner.encode(part))
                lengths[index] = len(parts[-1])
        return b"".join(self.index.assembled(lengths, parts))
