"""Reads parts of chunks without the rest of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from zarrfs.array.shards.inner_ranges import InnerRanges, Ranges
from zarrfs.errors import DecodeError, StoreError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.chunk_parts import ChunkParts
from zarrfs.format.codec import Buffer, EncodedPart
from zarrfs.store.base import Blob, ByteRange, Generation, Steps, Store


class Span(NamedTuple):
    """Bytes of a decoded chunk in C order, of which there are some; ``stop`` is exclusive."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


class PartRead(NamedTuple):
    """
    data : the wanted bytes.
    decoded : how many bytes were decoded for them.
    generation : state of the stored object that they come from.
    """

    data: memoryview
    decoded: int
    generation: Generation


class PartReader:
    """Parts of the chunks of one array. Thread-safe."""

    def __init__(
        self,
        store: Store,
        parts: ChunkParts,
        key: Callable[[Index], str],
        locate: Callable[[Index], tuple[Index, Index]],
        inner: InnerRanges | None,
    ) -> None:
        """
        key, locate : see `Array`.
        inner : None for an array without shards.
        """
        self._store = store
        self._parts = parts
        self._key = key
        self._locate = locate
        self._inner = inner

    @property
    def nbytes(self) -> int:
        """Bytes of a decoded chunk."""
        return self._parts.nbytes

    @property
    def divided(self) -> bool:
        """Whether a codec divides chunks, so that more is decoded than is wanted."""
        return self._parts.codec is not None

    def read(self, index: Index, span: Span, most: int) -> PartRead | None:
        """Read a part of a chunk. Blocks.

        most : bytes that may be decoded for it.

        None if the chunk has to be read as a whole, which tells why: it may be missing or damaged,
        or another writer has just replaced it.
        """
        search = _Search(self._parts, span, most)
        if self._inner is None:
            blobs = self._of_object(self._key(index), search)
        else:
            blobs = self._of_shard(self._inner, index, search)
        if blobs is None or search.part is None:
            return None
        try:
            data = self._parts.decode(search.part, [blob.data for blob in blobs], *span)
        except DecodeError:
            return None
        return PartRead(data, search.part.nbytes, blobs[0].info.generation)

    def _of_object(self, key: str, search: _Search) -> Sequence[Blob] | None:
        """The ranges of a chunk that is an object of its own."""
        if not search.head:
            size = self._parts.encoded.maximum
            blobs = self._steps(Steps(key, _ranges(search.at_once(size)), lambda _: ()))
            return blobs if blobs and blobs[0].info.size == size else None

        def then(heads: Sequence[Blob]) -> Sequence[ByteRange]:
            (head,) = heads
            return _ranges(search.behind(head.data, head.info.size))

        blobs = self._steps(Steps(key, [ByteRange(0, search.head)], then))
        return blobs[1:] if blobs else None

    def _steps(self, steps: Steps) -> Sequence[Blob] | None:
        (found,) = self._store.get_in_steps([steps])
        return None if isinstance(found, StoreError) else found

    def _of_shard(self, inner: InnerRanges, index: Index, search: _Search) -> Sequence[Blob] | None:
        """The ranges of an inner chunk."""
        stored, leaf = self._locate(index)
        place = self._key(stored), stored, leaf
        if not search.head:
            read = inner.read(*place, search.at_once)
            return None if read is None else read.blobs
        begun = inner.read(*place, lambda size: [(0, min(search.head, size))])
        if begun is None:
            return None
        (head,) = begun.blobs
        ranges = search.behind(head.data, begun.size)
        read = inner.read(*place, lambda _: ranges)
        if read is None or read.blobs[0].info.generation != head.info.generation:
            return None
        return read.blobs


class _Search:
    """Finds a part of one encoded chunk.

    head : see `ChunkParts.head`.
    part : None as long as it is not found.
    """

    def __init__(self, parts: ChunkParts, span: Span, most: int) -> None:
        self.head = parts.head
        self.part: EncodedPart | None = None
        self._parts = parts
        self._span = span
        self._most = most

    def at_once(self, size: int) -> Ranges:
        """The ranges of a part of a chunk that needs no head."""
        return self.behind(b"", size)

    def behind(self, head: Buffer, size: int) -> Ranges:
        """The ranges of the part; none if it is to be read as a whole."""
        part = self._parts.find(head, size, *self._span)
        self.part = None if part is None or part.nbytes > self._most else part
        return () if self.part is None else self.part.ranges


def _ranges(places: Ranges) -> Sequence[ByteRange]:
    return [ByteRange(*place) for place in places]
