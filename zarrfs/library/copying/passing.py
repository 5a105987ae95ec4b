"""Hands chunks on as they are encoded, to an array that encodes them in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

from zarrfs.array.array import Array
from zarrfs.array.chunk_decoder import ChunkResult
from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject
from zarrfs.array.shards.parts import StoredPart
from zarrfs.array.shards.shard_parts import ShardParts
from zarrfs.errors import StoreError
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.codec import Buffer
from zarrfs.library.transfer.tiles import Tile
from zarrfs.store.base import ANY, Blob
from zarrfs.views.elements.region import Region

_MOST_COMPARED = 1 << 20


@dataclass(frozen=True, slots=True)
class Passing:
    """How chunks get from ``source`` to ``target``.

    chunks : what to add to the index of a read chunk of the target for that of the source.
    objects : the same for stored objects, where these are the same too; None: only their chunks
        are.
    most : bytes of an object that is in memory as a whole.
    """

    source: Array
    writer: ChunkWriter
    region: Region
    chunks: Index
    objects: Index | None
    most: int

    @classmethod
    def plan(cls, source: Array, writer: ChunkWriter, region: Region, most: int) -> Passing | None:
        """None if the arrays encode chunks differently, or have others.

        most : bytes of an object, decoded, that is in memory as a whole.
        """
        one, other = source.layout, writer.array.layout
        if (one.pipeline, one.fill, one.data_type) != (other.pipeline, other.fill, other.data_type):
            return None
        if source.metadata.has_fill and not writer.array.metadata.has_fill:
            # Chunks that are not stored must be, because their elements would be undefined.
            return None
        chunks = _distance(one.read, other.read, region)
        if chunks is None:
            return None
        objects = None
        if one.levels == other.levels:
            objects = _distance(one.stored, other.stored, region)
        if objects is None and other.spec(other.stored.largest_chunk).nbytes > most:
            return None
        return cls(source, writer, region, chunks, objects, most)

    def takes(self, tile: Tile) -> bool:
        """Whether a box consists of whole chunks of the source."""
        grid = self.source.layout.read
        for axis, o, start, n, extent in zip(
            grid.axes, self.region.origin, tile.start, tile.shape, self.region.shape, strict=True
        ):
            last = o + start + n
            if start + n == extent and last != axis.extent:
                chunk = axis.chunk_of(last - 1)
                if axis.origin(chunk) + axis.length(chunk) != last:
                    return False
        return True

    def encoded(self, stored: Sequence[Index]) -> list[EncodedObject]:
        """The objects of the target, without those that the source does not have.

        Raises ChunkError if one cannot be had.
        """
        if self.objects is not None:
            return self._whole(stored, self.objects)
        found = [self._assembled(index) for index in stored]
        return [one for one in found if one.parts is not None]

    def _whole(self, stored: Sequence[Index], distance: Index) -> list[EncodedObject]:
        store = self.source.store
        keys = [self.source.key(tuple(map(add, index, distance))) for index in stored]
        targets = [self.writer.array.key(index) for index in stored]
        layout = self.source.layout
        limit = 2 * layout.spec(layout.stored.largest_chunk).nbytes + (1 << 20)
        found: list[EncodedObject] = []
        # The kernel copies files of this machine.
        if store.traits.near or limit > self.most:
            for key, target in zip(keys, targets, strict=True):
                if (info := store.info(key)) is not None:
                    whole = StoredPart(store, key, info, 0, info.size)
                    found.append(EncodedObject(target, ShardParts(target, [whole]), ANY))
            return found
        for target, blob in zip(targets, store.get_many(keys, limit=limit), strict=True):
            if isinstance(blob, StoreError):
                raise blob
            if isinstance(blob, Blob):
                found.append(EncodedObject(target, [blob.data], ANY))
        return found

    def _assembled(self, stored: Index) -> EncodedObject:
        layout = self.writer.array.layout
        origin, valid = layout.stored.origin(stored), layout.stored.valid_shape(stored)
        inner = layout.read.chunks_in(origin, valid)
        by_source = {tuple(map(add, index, self.chunks)): index for index in inner}
        encoded: dict[Index, Buffer] = {}
        for chunk in self.source.read_encoded(list(by_source)):
            if not isinstance(chunk, ChunkResult):
                encoded[by_source[chunk.index]] = chunk.data
            elif chunk.error is not None:
                raise chunk.error
        return self.writer.assemble(stored, encoded)


def _distance(source: ChunkGrid, target: ChunkGrid, region: Region) -> Index | None:
    """Between the indices of the same chunks of two grids; None if they have other chunks."""
    one, other = source.regular_shape, target.regular_shape
    if one is not None and one == other:
        if any(o % n for o, n in zip(region.origin, one, strict=True)):
            return None
        return tuple(o // n for o, n in zip(region.origin, one, strict=True))
    if any(region.origin) or source.shape != target.shape or _lengths(source) != _lengths(target):
        return None
    return (0,) * len(source.axes)


def _lengths(grid: ChunkGrid) -> list[Shape] | None:
    if sum(axis.count for axis in grid.axes) > _MOST_COMPARED:
        return None
    return [tuple(map(axis.length, range(axis.count))) for axis in grid.axes]
