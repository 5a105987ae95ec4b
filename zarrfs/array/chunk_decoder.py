"""Decoding the chunks of one array, small ones several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from zarrfs.errors import ChunkError, DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Generation

Memory = Callable[[Index], memoryview | None]

# Decoded bytes that are had at once: what a core's own cache holds beside their encoded form.
_TOGETHER = 1 << 20


@dataclass(slots=True)  # not frozen, which triples the price of making one
class ChunkResult:
    """One chunk, or why it cannot be had.

    generation : state of the stored object it came from; None if it is not stored.
    borrowed : whether the chunk keeps the memory of others alive, too, so that whoever
        wants it for long should copy it.
    """

    index: Index
    chunk: Chunk | None
    error: ChunkError | None
    generation: Generation | None
    borrowed: bool = False


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

    together : the most chunks that are decoded at once.
    """

    def __init__(self, layout: ChunkLayout) -> None:
        self._layout = layout
        shape = layout.read.regular_shape
        self._regular = None if shape is None else layout.chunk_codec(shape)
        self.together = 1
        if self._regular is not None and self._regular.together is not None:
            self.together = max(1, _TOGETHER // self._regular.spec.nbytes)

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
        batch: list[StoredChunk] = []
        for chunk in found:
            if isinstance(chunk, ChunkResult):
                yield chunk
                continue
            batch.append(chunk)
            if len(batch) == self.together:
                yield from self._decode_batch(batch, memory)
                batch = []
        yield from self._decode_batch(batch, memory)

    def _decode_batch(
        self, batch: Sequence[StoredChunk], memory: Memory | None
    ) -> Iterator[ChunkResult]:
        if len(batch) > 1 and (chunks := self._decode_together(batch)) is not None:
            for stored, chunk in zip(batch, chunks, strict=True):
                yield ChunkResult(stored.index, chunk, None, stored.generation, borrowed=True)
            return
        for stored in batch:
            yield self.decode_one(stored, memory)

    def _decode_together(self, batch: Sequence[StoredChunk]) -> list[Chunk] | None:
        assert self._regular is not None
        try:
            return self._regular.decode_together([stored.data for stored in batch])
        except Exception:  # noqa: BLE001 - what surprises the decoder comes again, one by one
            return None

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
