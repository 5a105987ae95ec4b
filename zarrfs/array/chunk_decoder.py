"""Decoding the chunks of one array, small ones several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from zarrfs.errors import ChunkError, DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Generation

Memory = Callable[[Index], memoryview | None]

# Decoded bytes that are had at once: what a core's own cache holds beside their encoded form.
_AT_ONCE = 1 << 20


@dataclass(slots=True)  # not frozen, which triples the price of making one
class ChunkResult:
    """One chunk, or why it cannot be had.

    generation : state of the stored object it came from; None if it is not stored.
    placed : whether its bytes are known to be in the memory that was given for it.
    """

    index: Index
    chunk: Chunk | None
    error: ChunkError | None
    generation: Generation | None
    placed: bool = False


@dataclass(slots=True)
class StoredChunk:
    """The bytes that a chunk was stored as.

    key : of the stored object.
    inner : whether it is one of many chunks in that object.
    """

    index: Index
    key: str
    data: Buffer
    generation: Generation | None
    inner: bool


class ChunkDecoder:
    """Decodes chunks of ``layout``. Safe for any number of threads.

    at_once : the most chunks that are decoded at once.
    """

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        shape = layout.read.regular_shape
        self._regular = None if shape is None else layout.chunk_codec(shape)
        self.at_once = 1
        if self._regular is not None:
            self.at_once = max(1, _AT_ONCE // max(1, self._regular.spec.nbytes))

    def codec(self, index: Index) -> ChunkCodec:
        """What decodes that chunk."""
        return self._regular or self._layout.chunk_codec(self._layout.read.chunk_shape(index))

    def codec_of(self, shape: Shape) -> ChunkCodec:
        """What decodes chunks of that shape."""
        return self._regular or self._layout.chunk_codec(shape)

    def decode(
        self, found: Iterable[StoredChunk | ChunkResult], memory: Memory | None
    ) -> Iterator[ChunkResult]:
        """Decoded chunks, and results as they are.

        memory : as `Array.read_chunks` takes it.
        """
        if memory is None or self._regular is None or self._regular.together is None:
            for chunk in found:
                yield self.decode_one(chunk, memory)
            return
        batch: list[StoredChunk] = []
        for chunk in found:
            if isinstance(chunk, ChunkResult):
                yield chunk
                continue
            batch.append(chunk)
            if len(batch) == self.at_once:
                yield from self._decode_together(self._regular, batch, memory)
                batch = []
        if batch:
            yield from self._decode_together(self._regular, batch, memory)

    def _decode_together(
        self, codec: ChunkCodec, batch: Sequence[StoredChunk], memory: Memory
    ) -> Iterator[ChunkResult]:
        size = codec.in_place
        places = [place for chunk in batch if (place := memory(chunk.index)) and len(place) == size]
        chunks: Sequence[Chunk] | None = None
        if len(places) == len(batch):
            # What surprises the decoder comes again, one by one.
            with suppress(Exception):
                chunks = codec.decode_together([chunk.data for chunk in batch], places)
        if chunks is None:
            for stored in batch:
                yield self.decode_one(stored, memory)
            return
        for stored, decoded in zip(batch, chunks, strict=True):
            yield ChunkResult(stored.index, decoded, None, stored.generation, placed=True)

    def decode_one(self, stored: StoredChunk | ChunkResult, memory: Memory | None) -> ChunkResult:
        """One chunk alone, or a result as it is."""
        if isinstance(stored, ChunkResult):
            return stored
        index = stored.index
        try:
            chunk = self.codec(index).decode(stored.data, None, memory and memory(index))
        except DecodeError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a decoder's surprise must stop nothing else
            reason = f"decoder failed: {error!r}"
        else:
            return ChunkResult(index, chunk, None, stored.generation)
        if stored.inner:
            reason = f"inner chunk {list(index)}: {reason}"
        return ChunkResult(index, None, ChunkError(stored.key, reason), stored.generation)
