"""Chunks of several small shards at once, each shard fetched with one request.

A shard of a few inner chunks costs more Python than its chunks, if its index is decoded, checked
and looked up on its own. So these are done for all shards of a batch together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.chunk_decoder import ChunkResult, StoredBatch
from zarrfs.array.stored_chunks import StoredChunks
from zarrfs.errors import StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, EncodedBatch
from zarrfs.format.shard_index import MISSING, check_places
from zarrfs.store.base import Blob, Generation

# Most bytes of the inner chunks of a shard. A larger shard costs little Python a byte as it is.
_LARGEST = 1 << 20


class _Shards(NamedTuple):
    """Consecutive shards of a request.

    data : their bytes; empty for a shard that is missing or bad.
    bad : whether a shard has to be read chunk by chunk.
    starts, stops : of each inner chunk in its shard, int64, of shape (shards, inner chunks) in the
        order of the index; both are 0 for an inner chunk that is not stored.
    """

    data: list[Buffer]
    generations: list[Generation | None]
    bad: list[bool]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    def behind(self, count: int) -> _Shards:
        """Without the first ``count`` shards."""
        return _Shards(
            self.data[count:],
            self.generations[count:],
            self.bad[count:],
            self.starts[count:],
            self.stops[count:],
        )

    def and_then(self, more: _Shards) -> _Shards:
        return _Shards(
            self.data + more.data,
            self.generations + more.generations,
            self.bad + more.bad,
            np.concatenate((self.starts, more.starts)),
            np.concatenate((self.stops, more.stops)),
        )


class ShardBatches:
    """Reads the small shards of one array. Thread-safe. Only if `suits` says so."""

    def __init__(self, layout: ChunkLayout, stored: StoredChunks) -> None:
        """
        stored : reads the chunks of a bad shard one by one.
        """
        assert layout.members is not None
        (level,) = layout.levels
        self._stored = stored
        self._members = np.array(layout.members, np.int64)
        self._order = list(level.axis_order)
        self._index = level.index_codec(layout.stored.largest_chunk)
        counts = self._index.counts
        # How far apart neighbours along each axis of the index are in it.
        self._steps = np.array([math.prod(counts[axis + 1 :]) for axis in range(len(counts))])
        self._chunk = layout.chunk_codec(level.inner_shape).encoded.maximum

    @staticmethod
    def suits(layout: ChunkLayout) -> bool:
        """Whether shards are small enough, if they are read together at all."""
        if layout.members is None:
            return False
        chunk = layout.chunk_codec(layout.levels[0].inner_shape).encoded.maximum
        return math.prod(layout.members) * chunk <= _LARGEST

    def read(self, indices: Sequence[Index], sizes: Sequence[int]) -> Iterator[StoredBatch]:
        """Chunks in their order, in batches.

        indices : those of one shard follow each other. Each shard is fetched whole.
        sizes : the number of chunks of each batch.
        """
        shards, inner = np.divmod(np.array(indices), self._members)
        begins = np.ones(len(indices), bool)
        np.any(shards[1:] != shards[:-1], axis=1, out=begins[1:])
        numbers = np.cumsum(begins) - 1
        slots = inner[:, self._order] @ self._steps
        keys = [self._stored.key(tuple(shard)) for shard in shards[begins].tolist()]
        blobs = self._fetch(keys, np.bincount(numbers).tolist())
        begun, held = 0, self._opened([])
        for first, stop in pairwise(accumulate(sizes, initial=0)):
            part = indices[first:stop]
            # A shard may have chunks in several batches.
            done = int(numbers[first]) - begun
            held = held.behind(done)
            begun += done
            missing = int(numbers[stop - 1]) + 1 - begun - len(held.data)
            if missing:
                more = self._opened([next(blobs) for _ in range(missing)])
                held = held.and_then(more) if held.data else more
            rows = numbers[first:stop] - begun
            yield self._batch(part, keys[begun:], held, rows, slots[first:stop])

    def _fetch(
        self, keys: Sequence[str], chunks: Sequence[int]
    ) -> Iterator[Blob | StoreError | None]:
        """Shards of which so many chunks are wanted, for which there is room in memory."""
        first = 0
        for count, alike in groupby(chunks):
            stop = first + sum(1 for _ in alike)
            yield from self._stored.fetch(keys[first:stop], count * self._chunk + self._index.size)
            first = stop

    def _batch(
        self,
        indices: Sequence[Index],
        keys: Sequence[str],
        shards: _Shards,
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> StoredBatch:
        """
        keys : of ``shards``, and more.
        rows, slots : of each chunk, its shard, and its place in the index of that.
        """
        starts, stops = shards.starts[rows, slots], shards.stops[rows, slots]
        of = rows.tolist()
        parts: list[tuple[int, int, int] | None]
        parts = list(zip(of, starts.tolist(), stops.tolist(), strict=True))
        alone: dict[int, ChunkResult] = {}
        bad: list[int] = []
        for number in np.flatnonzero(stops == 0).tolist():
            parts[number] = None
            if shards.bad[row := of[number]]:
                bad.append(number)
                continue
            generation = shards.generations[row]
            alone[number] = self._stored.missing(keys[row], indices[number], generation)
        generations = [shards.generations[row] for row in of]
        if bad:
            alone |= self._stored.alone(indices, bad)
            for number in bad:
                generations[number] = alone[number].generation
        return StoredBatch(
            indices,
            EncodedBatch(shards.data, parts),
            [keys[row] for row in of],
            generations,
            alone,
            inner=True,
        )

    def _opened(self, blobs: Sequence[Blob | StoreError | None]) -> _Shards:
        index = self._index
        entries = np.full((len(blobs), math.prod(index.counts), 2), MISSING, np.uint64)
        data: list[Buffer] = [b""] * len(blobs)
        generations: list[Generation | None] = [None] * len(blobs)
        bad = [isinstance(blob, StoreError) for blob in blobs]
        for number, blob in enumerate(blobs):
            if isinstance(blob, Blob):
                try:
                    entries[number] = index.entries_of(blob.data).reshape(-1, 2)
                except Exception:  # noqa: BLE001 - reading it chunk by chunk finds the error
                    bad[number] = True
                else:
                    data[number], generations[number] = blob.data, blob.info.generation
        sizes = np.array([len(each) for each in data], np.uint64).reshape(-1, 1)
        places = check_places(entries, index.first, sizes, self._chunk)
        for number in np.flatnonzero(~places.good.all(axis=1)).tolist():
            bad[number] = True
        stops = places.offsets + places.lengths
        stops[bad] = 0
        return _Shards(data, generations, bad, places.offsets, stops)
