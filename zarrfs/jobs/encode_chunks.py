"""The job that encodes inner chunks of one shard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter, Together
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.jobs import answers
from zarrfs.jobs.job import SMALL_CHUNK, BadAnswer, Packed, Passing
from zarrfs.jobs.worker import Place, Worker

# A process finishes smaller batches before the daemon can send the next one. Larger batches would
# starve the other processes.
IN_A_PROCESS = Together(256 << 10, 2 << 20, 1024)

Encoded = Mapping[Index, Buffer | None]
"""The bytes to store for each chunk; None: none are to be stored."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodeChunks:
    """See `Job`. The caller assembles the shard and stores it.

    chunks : whole chunks, all of one shape.
    out : memory for the encoded bytes, one chunk after the other, in a worker process; None: any.
    """

    writer: ChunkWriter
    chunks: Mapping[Index, Chunk]
    out: NDArray[np.uint8] | None = None

    @staticmethod
    def gains(array: Array) -> bool:
        """Whether worker processes encode such chunks faster than threads.

        Threads that compress small chunks wait for the interpreter's lock after each chunk, in
        competition with the event loop.
        """
        layout = array.layout
        shape = layout.read.regular_shape
        if not layout.sharded or shape is None:
            return False
        small = 0 < layout.spec(shape).nbytes <= SMALL_CHUNK
        return small and not layout.chunk_codec(shape).light

    @property
    def array(self) -> Array:
        return self.writer.array

    def perform(self) -> Encoded:
        return self.writer.encoded_together(self.chunks)

    def pack(self, passing: Passing) -> Packed | None:
        first = next(iter(self.chunks.values()), None)
        if first is None:
            return None
        places = [
            passing.memory.offset(chunk) if chunk.flags.c_contiguous else None
            for chunk in self.chunks.values()
        ]
        if None in places:
            return None
        # If many chunks become longer and some do not fit, `accept` encodes these again.
        room = len(places) * (first.nbytes + first.nbytes // 16 + 1024)
        lent = passing.lend(room)
        if lent is None or (out := passing.memory.offset(lent)) is None:
            return None
        values = (
            self.array.name,
            self.writer.store_fill,
            np.array(list(self.chunks), np.int64),
            np.array(places, np.int64),
            (first.dtype.str, first.shape),
            Place(out, "|u1", (room,)),
        )
        return Packed(values, lent)

    @classmethod
    def unpack(cls, worker: Worker, *values: Any) -> Self:
        name, store_fill, indices, places, form, out = values
        chunks = {
            tuple(index): worker.memory(Place(offset, *form), populate=False)
            for index, offset in zip(indices.tolist(), places.tolist(), strict=True)
        }
        return cls(worker.writer(name, store_fill=store_fill), chunks, worker.memory(out))

    def answer(self, result: Encoded) -> Any:
        """The length of each encoded chunk: 0 if it is not to be stored, -1 if it did not fit."""
        assert self.out is not None
        lengths: list[int] = []
        position = 0
        for data in result.values():
            length = 0 if data is None else len(data)
            if position + length > len(self.out):
                length = -1
            elif data is not None:
                self.out.data[position : position + length] = data
                position += length
            lengths.append(length)
        return lengths

    def accept(self, answer: Any, lent: NDArray[np.uint8] | None) -> Encoded:
        assert lent is not None
        lengths = [answers.number(each, -1) for each in answers.items(answer, len(self.chunks))]
        used = sum(length for length in lengths if length > 0)
        if used > len(lent):
            raise BadAnswer(f"{used} bytes are more than there was room for")
        # The arena lends this memory again.
        data = memoryview(lent[:used].tobytes())
        encoded: dict[Index, Buffer | None] = {}
        position = 0
        for (index, chunk), length in zip(self.chunks.items(), lengths, strict=True):
            if length < 0:
                encoded[index] = self.writer.encoded(index, chunk)
            else:
                encoded[index] = data[position : position + length] if length else None
                position += length
        return encoded
