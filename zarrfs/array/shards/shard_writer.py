"""Builds shards anew: changed inner chunks replaced, all others copied as they are stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from itertools import product

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import BoundBytesBytes, Buffer
from zarrfs.format.pipeline import decode_bytes, encode_bytes
from zarrfs.format.shard_index import MISSING, IndexCodec

Changes = Mapping[Index, Buffer | None]
"""New inner chunks, encoded, by index within the shard in leaf chunks; None: not stored."""


class ShardWriter:
    """Shards of one array as bytes."""

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        self._leaf_shape = layout.levels[-1].inner_shape

    def rewrite(self, old: Buffer | None, shape: Shape, changes: Changes) -> list[Buffer] | None:
        """The parts of a shard of decoded ``shape`` after ``changes``; None if nothing is left.

        old : the stored shard; None where there is none.

        Raises DecodeError where the old shard cannot be taken apart.
        """
        around = self._layout.around_codecs(shape)
        return self._rewrite(old, 0, shape, changes, around)

    def _rewrite(
        self,
        old: Buffer | None,
        depth: int,
        shape: Shape,
        changes: Changes,
        around: tuple[tuple[BoundBytesBytes, ...], ...],
    ) -> list[Buffer] | None:
        level = self._layout.levels[depth]
        codec = level.index_codec(shape)
        inner: dict[Index, Buffer] = {}
        is_leaf = depth == len(self._layout.levels) - 1
        by_inner = {} if is_leaf else self._by_inner(level.inner_shape, changes)
        kept: dict[Index, Buffer] = {}
        if old is not None:
            shard = memoryview(decode_bytes(around[depth], old))
            kept = self._taken_apart(shard, depth, shape, changes if is_leaf else ())
        for index in product(*map(range, codec.counts)):
            position = self._position(depth, index)
            if position not in (changes if is_leaf else by_inner):
                data = kept.get(index)
            elif is_leaf:
                data = changes[position]
            else:
                parts = self._rewrite(
                    kept.get(index), depth + 1, level.inner_shape, by_inner[position], around
                )
                data = None if parts is None else b"".join(parts)
            if data is not None:
                inner[index] = data
        if not inner:
            return None
        whole = assembled(codec, inner)
        return [encode_bytes(around[depth], b"".join(whole))] if around[depth] else whole

    def _by_inner(
        self, inner_shape: Shape, changes: Changes
    ) -> dict[Index, dict[Index, Buffer | None]]:
        """Changes of inner chunks that are shards themselves."""
        scale = tuple(s // c for s, c in zip(inner_shape, self._leaf_shape, strict=True))
        by_inner: dict[Index, dict[Index, Buffer | None]] = defaultdict(dict)
        for leaf, encoded in changes.items():
            of = tuple(i // n for i, n in zip(leaf, scale, strict=True))
            by_inner[of][tuple(i % n for i, n in zip(leaf, scale, strict=True))] = encoded
        return by_inner

    def _taken_apart(
        self, shard: memoryview, depth: int, shape: Shape, replaced: Container[Index]
    ) -> dict[Index, Buffer]:
        """The encoded inner chunks of a shard, by their place in its index.

        replaced : inner chunks that are not needed, in the array's axis order.
        """
        codec = self._layout.levels[depth].index_codec(shape)
        if len(shard) < codec.size:
            raise DecodeError(f"a shard of {len(shard)} bytes has no room for its index")
        start = 0 if codec.location == "start" else len(shard) - codec.size
        entries = codec.decode(shard[start : start + codec.size], len(shard))
        kept: dict[Index, Buffer] = {}
        for index in product(*map(range, codec.counts)):
            if self._position(depth, index) in replaced:
                continue
            where = entries.locate(index, len(shard))
            if where is not None:
                kept[index] = shard[where[0] : where[0] + where[1]]
        return kept

    def _position(self, depth: int, index: Index) -> Index:
        """From a place in a shard's index to the inner chunk in the array's axis order."""
        order = self._layout.levels[depth].axis_order
        if order == tuple(range(len(index))):
            return index
        position = [0] * len(index)
        for axis, i in zip(order, index, strict=True):
            position[axis] = i
        return tuple(position)


def assembled(codec: IndexCodec, inner: Mapping[Index, Buffer]) -> list[Buffer]:
    """The parts of a shard of these encoded inner chunks, by their place in its index."""
    entries = np.full((*codec.counts, 2), MISSING, np.uint64)
    offset = codec.size if codec.location == "start" else 0
    for index, data in inner.items():
        entries[index] = offset, len(data)
        offset += len(data)
    encoded = codec.codec.encode(entries)
    body = list(inner.values())
    return [encoded, *body] if codec.location == "start" else [*body, encoded]
