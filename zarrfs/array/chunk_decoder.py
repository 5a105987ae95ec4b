"""Decodes the chunks of one array, small ones in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.errors import ChunkError, DecodeError, reason_of
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, Chunk, EncodedBatch
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Generation

Memory = Callable[[Index], memoryview | None]

# Decoded bytes of one batch: as much as a core's own cache has room for, with the encoded bytes.
_AT_ONCE = 1 << 20


# Not frozen: that would triple the cost of creating an instance.
@dataclass(slots=True, eq=False, repr=False)
class ChunkResult:
    """One chunk, or the error of reading it.

    generation : state of the stored object it came from; None if it is not stored.
    """

    index: Index
    chunk: Chunk | None
    error: ChunkError | None
    generation: Generation | None


@dataclass(slots=True, eq=False, repr=False)
class StoredChunk:
    """The stored bytes of a chunk.

    key : of the stored object.
    inner : whether it is one of many chunks in that object.
    """

    index: Index
    key: str
    data: Buffer
    generation: Generation | None
    inner: bool


class StoredBatch(NamedTuple):
    """Several consecutive chunks of a request.

    encoded : the bytes of each chunk, except for those in `alone`.
    keys, generations : of each chunk, as in `StoredChunk`.
    alone : by position in the batch, the chunks whose results are known already.
    """

    indices: Sequence[Index]
    encoded: EncodedBatch
    keys: Sequence[str]
    generations: Sequence[Generation | None]
    alone: dict[int, ChunkResult]
    inner: bool


class DecodedBatch(NamedTuple):
    """Several chunks, decoded to memory in which they lie one after the other.

    alone : by position in the batch, the results of chunks that are not in that memory.
    """

    generations: Sequence[Generation | None]
    alone: dict[int, ChunkResult]


class ChunkDecoder:
    """Decodes chunks of ``layout``. Thread-safe.

    at_once : the most chunks of one batch.
    together : the codec that decodes batches, if that costs less than one by one; else None.
    as_stored : the codec that decodes to elements in stored order, if all chunks have one shape;
        else None.
    fetched : the most chunks whose stored bytes are fetched at once for ``as_stored``.
    """

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        shape = layout.read.regular_shape
        self._regular = regular = None if shape is None else layout.chunk_codec(shape)
        self.at_once = 1
        self.together = None
        if regular is not None and regular.together is not None:
            self.at_once = max(1, _AT_ONCE // regular.in_place)
            self.together = regular
        self.as_stored = None
        self.fetched = 1
        if regular is not None and regular.as_stored is not None:
            self.fetched = max(1, _AT_ONCE // regular.as_stored.size)
            self.as_stored = regular

    def codec(self, index: Index) -> ChunkCodec:
        """The codec of that chunk."""
        return self._regular or self._layout.chunk_codec(self._layout.read.chunk_shape(index))

    def codec_of(self, shape: Shape) -> ChunkCodec:
        """The codec of chunks of that shape."""
        return self._regular or self._layout.chunk_codec(shape)

    def decode_batch(self, stored: StoredBatch, out: memoryview) -> DecodedBatch:
        """Decode chunks to ``out``, which has room for all of them. Only with `together`."""
        assert self.together is not None
        alone = stored.alone
        parts = stored.encoded.parts
        if len(alone) == len(parts):
            return DecodedBatch(stored.generations, alone)
        # After an unexpected error, decoding one by one finds the chunk that causes it.
        with suppress(Exception):
            size = len(parts) * self.together.in_place
            if len(out) == size and self.together.decode_together(stored.encoded, out):
                return DecodedBatch(stored.generations, alone)
        alone = dict(alone)
        for number in range(len(parts)):
            if (result := self.decode_alone(stored, number)) is not None:
                alone[number] = result
        return DecodedBatch(stored.generations, alone)

    def decode_alone(self, stored: StoredBatch, number: int) -> ChunkResult | None:
        """Decode one chunk of a batch; None if the batch has no bytes of it."""
        if (data := stored.encoded.data(number)) is None:
            return stored.alone.get(number)
        index, key = stored.indices[number], stored.keys[number]
        chunk = StoredChunk(index, key, data, stored.generations[number], stored.inner)
        return self.decode(chunk, None)

    def decode_as_stored(
        self, stored: StoredBatch, number: int, memory: memoryview
    ) -> Chunk | ChunkResult:
        """Decode one chunk of a batch; see `ChunkCodec.decode_as_stored`. Only with `as_stored`.

        Returns a result in place of the chunk if it is not stored, or fails.
        """
        assert self.as_stored is not None
        if (data := stored.encoded.data(number)) is None:
            return stored.alone[number]
        try:
            return self.as_stored.decode_as_stored(data, memory)
        except Exception:  # noqa: BLE001 - `decode_alone` reports the error
            result = self.decode_alone(stored, number)
            assert result is not None
            return result

    def decode_evenly_stored(self, stored: StoredBatch, first: int, counts: Shape) -> Chunk | None:
        """Decode chunks from position ``first`` of a batch at once, without a copy.

        Returns all of them, of shape ``(*counts, *chunk)``, as `decode_as_stored` returns each;
        None if they do not lie evenly spaced in one piece, or one of them is bad. Only with
        `as_stored`.
        """
        assert self.as_stored is not None
        try:
            return self.as_stored.decode_evenly_stored(stored.encoded, first, counts)
        except DecodeError:
            return None

    def decode(self, stored: StoredChunk | ChunkResult, memory: Memory | None) -> ChunkResult:
        """Decode one chunk; a result is returned unchanged.

        memory : as `Array.read_chunks` takes it.
        """
        if isinstance(stored, ChunkResult):
            return stored
        index = stored.index
        try:
            chunk = self.codec(index).decode(stored.data, None, memory and memory(index))
        except DecodeError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a decoder's error must affect this chunk only
            reason = f"cannot be decoded: {reason_of(error)}"
        else:
            return ChunkResult(index, chunk, None, stored.generation)
        if stored.inner:
            reason = f"inner chunk {list(index)}: {reason}"
        return ChunkResult(index, None, ChunkError(stored.key, reason), stored.generation)
