"""Rewrites shards: changed inner chunks are replaced, all others copied as they are stored.

A shard may be larger than memory. So the untouched inner chunks of a shard that is not in memory
are only described here (`StoredPart`), and read when the new shard is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.shards.parts import MemoryPart, Part, StoredPart, read_index
from zarrfs.errors import DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout, Wrapping
from zarrfs.format.codec import Buffer
from zarrfs.format.pipeline import encode_bytes
from zarrfs.format.shard_index import IndexCodec, ShardIndex

# Bytes of encoded inner chunks up to which several are joined in one buffer.
_JOINED = 32 << 10

_KEPT = -1
_REMOVED = -2


Piece: TypeAlias = Buffer | StoredPart
"""Some bytes of a new shard, maybe as the old one has them."""

_Piece = TypeVar("_Piece", bound=Piece)


class InnerChanges(NamedTuple):
    """New inner chunks of one shard, encoded. Each takes three numbers, however small it is.

    data : buffers with one or several inner chunks each.
    places : int64, with an axis of three before those of the shard's shape in read chunks, which
        are in the array's order: the number of the buffer, or a mark that the inner chunk is kept
        or removed; where in the buffer it begins; its bytes.
    """

    data: list[Buffer]
    places: NDArray[np.int64]

    @classmethod
    def none(cls, counts: Shape) -> InnerChanges:
        """Every inner chunk is kept."""
        places = np.zeros((3, *counts), np.int64)
        places[0] = _KEPT
        return cls([], places)

    def replace(self, indices: Sequence[Index], encoded: Sequence[Buffer | None]) -> None:
        """Replace inner chunks, or remove those that are None."""
        if not encoded:
            return
        lengths = np.array([0 if data is None else len(data) for data in encoded], np.int64)
        here = [data for data in encoded if data is not None]
        numbers = np.full(len(encoded), _REMOVED, np.int64)
        starts = np.zeros(len(encoded), np.int64)
        stored = np.array([data is not None for data in encoded], bool)
        first = len(self.data)
        if len(here) > 1 and int(lengths.sum()) <= _JOINED * len(here):
            # As separate objects, small inner chunks would take more memory than their bytes.
            numbers[stored] = first
            starts = np.cumsum(lengths) - lengths
            self.data.append(b"".join(here))
        else:
            numbers[stored] = first + np.arange(len(here))
            self.data.extend(here)
        where: tuple[Any, ...] = tuple(np.array(indices, np.int64).reshape(len(encoded), -1).T)
        places = np.array([numbers, starts, lengths])
        # A shard of rank 0 has one inner chunk, and its empty index selects the whole table.
        self.places[:, *where] = places if where else places[:, -1]

    def within(self, where: tuple[slice, ...]) -> InnerChanges:
        """The changes of an inner chunk that is a shard itself."""
        return InnerChanges(self.data, self.places[:, *where])

    @property
    def any(self) -> bool:
        return bool((self.places[0] != _KEPT).any())


class ShardWriter:
    """Rewrites the shards of one array as bytes."""

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        self._leaf_shape = layout.levels[-1].inner_shape

    def counts(self, shape: Shape) -> Shape:
        """How many read chunks a shard of ``shape`` has along each axis."""
        return tuple(n // leaf for n, leaf in zip(shape, self._leaf_shape, strict=True))

    def rewrite(self, old: Part | None, shape: Shape, changes: InnerChanges) -> list[Piece] | None:
        """The pieces of a shard of decoded ``shape`` after ``changes``; None if it is empty.

        old : the stored shard; None if there is none.

        Raises DecodeError if the old shard cannot be parsed, and the errors of reading its index.
        """
        return self._rewrite(old, 0, shape, changes, self._layout.wrappings(shape))

    def _rewrite(
        self,
        old: Part | None,
        depth: int,
        shape: Shape,
        changes: InnerChanges,
        around: Sequence[Wrapping],
    ) -> list[Piece] | None:
        level = self._layout.levels[depth]
        codec = level.index_codec(shape)
        entries: ShardIndex | None = None
        if old is not None:
            if around[depth].codecs:
                (data,) = old.read([(0, old.size)])
                old = MemoryPart(around[depth].undo(data))
            entries = read_index(old, codec)
        if depth == len(self._layout.levels) - 1:
            whole = _leaves(old, entries, codec, changes, level.axis_order)
        else:
            whole = self._inner_shards(old, entries, depth, codec, changes, around)
        if whole is None or not around[depth].codecs:
            return whole
        return [encode_bytes(around[depth].codecs, b"".join(_read(whole)))]

    def _inner_shards(
        self,
        old: Part | None,
        entries: ShardIndex | None,
        depth: int,
        codec: IndexCodec,
        changes: InnerChanges,
        around: Sequence[Wrapping],
    ) -> list[Piece] | None:
        level = self._layout.levels[depth]
        each = self.counts(level.inner_shape)
        body: list[Piece] = []
        lengths = np.zeros(codec.counts, np.int64)
        for place in product(*map(range, codec.counts)):
            position = _position(level.axis_order, place)
            inside = tuple([slice(i * n, i * n + n) for i, n in zip(position, each, strict=True)])
            inner = changes.within(inside)
            where = None
            if entries is not None and old is not None:
                where = entries.locate(place, old.size)
            pieces: list[Piece] | None
            if not inner.any:
                pieces = None if where is None or old is None else [_stretch(old, *where)]
            else:
                part = None if where is None or old is None else old.inner(*where)
                pieces = self._rewrite(part, depth + 1, level.inner_shape, inner, around)
            if pieces is not None:
                body += pieces
                lengths[place] = sum(map(_length, pieces))
        return codec.assembled(lengths, body) if lengths.any() else None


def _leaves(
    old: Part | None,
    entries: ShardIndex | None,
    codec: IndexCodec,
    changes: InnerChanges,
    axis_order: tuple[int, ...],
) -> list[Piece] | None:
    """The inner chunks; those that are adjacent in their source become one piece."""
    in_order = changes.places.transpose(0, *[axis + 1 for axis in axis_order])
    source, start, length = in_order.reshape(3, -1).copy()
    kept = source == _KEPT
    if entries is None or old is None:
        source[kept] = _REMOVED
    elif kept.any():
        places = entries.places(old.size)
        bad = kept & ~places.good
        if bad.any():
            # `locate` raises an error that says what is wrong.
            entries.locate(_unravel(int(np.argmax(bad)), codec.counts), old.size)
            raise DecodeError("the index of the shard is damaged")
        start[kept], length[kept] = places.offsets[kept], places.lengths[kept]
        source[kept & (length == 0)] = _REMOVED
    body: list[Piece] = []
    for number, first, size in _runs(source, start, length):
        if number == _KEPT:
            assert old is not None
            body.append(_stretch(old, first, size))
        else:
            data = changes.data[number]
            all_of_it = first == 0 and size == len(data)
            body.append(data if all_of_it else memoryview(data)[first : first + size])
    return codec.assembled(length, body) if length.any() else None


def _runs(
    source: NDArray[np.int64], start: NDArray[np.int64], length: NDArray[np.int64]
) -> Iterator[tuple[int, int, int]]:
    """Source, first byte and number of bytes of each contiguous piece."""
    stored = np.flatnonzero(source != _REMOVED)
    if not len(stored):
        return
    source, start, length = source[stored], start[stored], length[stored]
    ends = start + length
    new = np.append(True, (source[1:] != source[:-1]) | (start[1:] != ends[:-1]))
    heads = np.flatnonzero(new)
    tails = np.append(heads[1:], len(stored)) - 1
    yield from zip(
        source[heads].tolist(),
        start[heads].tolist(),
        (ends[tails] - start[heads]).tolist(),
        strict=True,
    )


def _stretch(old: Part, offset: int, length: int) -> Piece:
    """Bytes of the old shard, directly if they are in memory."""
    part = old.inner(offset, length)
    return part.data if isinstance(part, MemoryPart) else part


def _length(piece: Piece) -> int:
    return piece.size if isinstance(piece, StoredPart) else len(piece)


def _read(pieces: Iterable[Piece]) -> Iterator[Buffer]:
    for piece in pieces:
        if isinstance(piece, StoredPart):
            yield from piece.read([(0, piece.size)])
        else:
            yield piece


def _unravel(number: int, counts: Shape) -> Index:
    return tuple([int(i) for i in np.unravel_index(number, counts)]) if counts else ()


def _position(axis_order: tuple[int, ...], index: Index) -> Index:
    """Convert a place in a shard's index to the array's axis order."""
    position = [0] * len(index)
    for axis, i in zip(axis_order, index, strict=True):
        position[axis] = i
    return tuple(position)
