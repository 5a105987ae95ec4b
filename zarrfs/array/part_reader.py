"""Reads parts of chunks without the rest of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.array.shards.parts import ObjectChanged, StoredPart
from zarrfs.array.shards.shard_reader import ShardReader
from zarrfs.array.shards.stored_shards import Shard
from zarrfs.errors import DecodeError, StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.chunk_parts import ChunkParts
from zarrfs.format.codec import Buffer
from zarrfs.store.base import ByteRange, Generation, Store
from zarrfs.store.ranges import Span


class PartRead(NamedTuple):
    """
    data : the wanted bytes.
    decoded : how many bytes were decoded for them.
    generation : state of the stored object that they come from.
    """

    data: memoryview
    decoded: int
    generation: Generation


@dataclass(frozen=True, slots=True, eq=False)
class PartReader:
    """Parts of the chunks of one array. Thread-safe.

    key, locate : see `Array`.
    shards : bare ones; None for an array without shards.
    """

    store: Store
    parts: ChunkParts
    key: Callable[[Index], str]
    locate: Callable[[Index], tuple[Index, Index]]
    shards: ShardReader | None

    @property
    def nbytes(self) -> int:
        """Bytes of a decoded chunk."""
        return self.parts.nbytes

    @property
    def divided(self) -> bool:
        """Whether a codec divides chunks, so that more is decoded than is wanted."""
        return self.parts.codec is not None

    def read(self, index: Index, span: Span, most: int) -> PartRead | None:
        """Read a part of a chunk. Blocks.

        span : some bytes of the decoded chunk in C order.
        most : bytes that may be decoded for it.

        None if the chunk has to be read as a whole, which tells why: it may be missing or damaged,
        or another writer has just replaced it.
        """
        try:
            if self.shards is None:
                return self._of_object(self.key(index), span, most)
            stored, leaf = self.locate(index)
            chunk = self.shards.inner_chunk(self.key(stored), stored, leaf)
            return None if chunk is None else self._of_shard(chunk, span, most)
        except ObjectChanged as error:
            if self.shards is not None:
                self.shards.states.forget(error.key)
        except (DecodeError, StoreError):
            pass
        return None

    def _of_shard(self, chunk: Shard, span: Span, most: int) -> PartRead | None:
        """The part of an inner chunk. Raises DecodeError, StoreError and ObjectChanged."""
        encoded, head = chunk.part, self.parts.head
        (begin,) = encoded.read([(0, min(head, encoded.size))]) if head else (b"",)
        return self._behind(begin, chunk, span, most)

    def _of_object(self, key: str, span: Span, most: int) -> PartRead | None:
        """The part of a chunk that is an object of its own; raises as `_of_shard`.

        The first request also tells the size and state of the object.
        """
        size, head = self.parts.encoded.maximum, self.parts.head
        part = None if head else self.parts.find(b"", size, *span)
        first = [(0, head)] if part is None else part.ranges
        blobs = self.store.get_ranges(key, [ByteRange(*place) for place in first])
        if not blobs:
            return None
        data, info = [blob.data for blob in blobs], blobs[0].info
        if part is None:
            whole = Shard(StoredPart(self.store, key, info, 0, info.size), info.generation)
            return self._behind(data[0], whole, span, most)
        if info.size != size or part.nbytes > most:
            return None
        return PartRead(self.parts.decode(part, data, *span), part.nbytes, info.generation)

    def _behind(self, head: Buffer, chunk: Shard, span: Span, most: int) -> PartRead | None:
        encoded = chunk.part
        part = self.parts.find(head, encoded.size, *span)
        if part is None or part.nbytes > most:
            return None
        data = self.parts.decode(part, encoded.read(part.ranges), *span)
        return PartRead(data, part.nbytes, chunk.generation)
