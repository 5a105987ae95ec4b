"""Decoding the chunks of one array, small ones several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.errors import ChunkError, DecodeError
from zarrfs.format.chunk_grid import Index, Shape
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.codec import Buffer, Chunk, EncodedBatch
from zarrfs.format.pipeline import ChunkCodec
from zarrfs.store.base import Generation

Memory = Callable[[Index], memoryview | None]

# Decoded bytes that are had at once: what a core's own cache holds beside their encoded form.
_AT_ONCE = 1 << 20


# Not frozen, which triples the price of making one.
@dataclass(slots=True, eq=False, repr=False)
class ChunkResult:
    """One chunk, or why it cannot be had.

    generation : state of the stored object it came from; None if it is not stored.
    """

    index: Index
    chunk: Chunk | None
    error: ChunkError | None
    generation: Generation | None


@dataclass(slots=True, eq=False, repr=False)
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


class StoredBatch(NamedTuple):
    """Several chunks that follow each other in what is asked for.

    encoded : of each its bytes, but for those that are `alone`.
    keys, generations : of each, as in `StoredChunk`.
    alone : by their position here, those of which it is known already what becomes of them.
    """

    indices: Sequence[Index]
    encoded: EncodedBatch
    keys: Sequence[str]
    generations: Sequence[Generation | None]
    alone: dict[int, ChunkResult]
    inner: bool


class DecodedBatch(NamedTuple):
    """Several chunks, decoded to memory in which they lie one after the other.

    alone : by their position here, those that are not there.
    """

    generations: Sequence[Generation | None]
    alone: dict[int, ChunkResult]


class ChunkDecoder:
    """Decodes chunks of ``layout``. Safe for any number of threads.

    at_once : the most chunks that are decoded at once.
    together : what decodes several at once, where that costs less than one by one.
    as_stored : what decodes to elements as they are stored, where all chunks have one shape.
    fetched : chunks whose stored bytes are had at once, for ``as_stored``.
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
        """What decodes that chunk."""
        return self._regular or self._layout.chunk_codec(self._layout.read.chunk_shape(index))

    def codec_of(self, shape: Shape) -> ChunkCodec:
        """What decodes chunks of that shape."""
        return self._regular or self._layout.chunk_codec(shape)

    def decode_batch(self, stored: StoredBatch, out: memoryview) -> DecodedBatch:
        """Chunks decoded to ``out``, which has room for them all; with `together` only."""
        assert self.together is not None
        alone = stored.alone
        parts = stored.encoded.parts
        if len(alone) == len(parts):
            return DecodedBatch(stored.generations, alone)
        # What surprises the decoder comes again, one by one.
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
        """One chunk of a batch; None where the batch has no bytes of it."""
        if (data := stored.encoded.data(number)) is None:
            return stored.alone.get(number)
        index, key = stored.indices[number], stored.keys[number]
        chunk = StoredChunk(index, key, data, stored.generations[number], stored.inner)
        return self.decode(chunk, None)

    def decode_as_stored(
        self, stored: StoredBatch, number: int, memory: memoryview
    ) -> Chunk | ChunkResult:
        """One chunk of a batch; see `ChunkCodec.decode_as_stored`. Only with `as_stored`.

        A result is what becomes of it otherwise.
        """
        assert self.as_stored is not None
        if (data := stored.encoded.data(number)) is None:
            return stored.alone[number]
        try:
            return self.as_stored.decode_as_stored(data, memory)
        except Exception:  # noqa: BLE001 - what is wrong with it comes again
            result = self.decode_alone(stored, number)
            assert result is not None
            return result

    def decode(self, stored: StoredChunk | ChunkResult, memory: Memory | None) -> ChunkResult:
        """One chunk, or a result as it is.

        memory : as `Array.read_chunks` takes it.
        """
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
