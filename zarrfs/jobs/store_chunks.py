"""The job that encodes and stores chunks which are objects of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject, Stored
from zarrfs.errors import ChunkError, StoreError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs import answers
from zarrfs.jobs.job import Packed, Passing
from zarrfs.jobs.worker import Place, Worker
from zarrfs.store.base import Expected

# Bytes of a chunk up to which processes store it in less time than threads: over 27 arrays with
# chunks of 64 to 256 KiB a median of 12 % less in memory, over 8 of them 7 % on a disk. Passing a
# larger one to a process costs about as much as the interpreter's lock: over 13 arrays with chunks
# of up to 2 MiB, 14 % less to 19 % more.
_SMALL_CHUNK = 256 << 10


class NewChunk(NamedTuple):
    """A whole chunk.

    expected : the state that its object must be in; ANY if any state is accepted.
    """

    chunk: Chunk
    expected: Expected


Results = Mapping[Index, Stored | ChunkError]
"""The new state of each object, None if it was removed; or the error."""


@dataclass(frozen=True, slots=True, eq=False)
class StoreChunks:
    """See `Job`."""

    writer: ChunkWriter
    chunks: Mapping[Index, NewChunk]

    @staticmethod
    def gains(array: Array) -> bool:
        """Whether worker processes store such chunks faster than threads.

        Storing a file takes a dozen system calls. In a thread, each call releases the interpreter's
        lock and waits for it again.
        """
        shape = array.layout.read.regular_shape
        if array.layout.sharded or shape is None:
            return False
        return 0 < array.layout.spec(shape).nbytes <= _SMALL_CHUNK

    @property
    def array(self) -> Array:
        return self.writer.array

    def perform(self) -> Results:
        encoded: dict[Index, EncodedObject] = {}
        results: dict[Index, Stored | ChunkError] = {}
        for index, (chunk, expected) in self.chunks.items():
            try:
                encoded[index] = self.writer.encode(index, {index: chunk}, expected)
            except (ChunkError, StoreError) as error:
                results[index] = error.without_frames()
            except ZarrfsError as error:
                results[index] = ChunkError(self.array.key(index), str(error))
        results.update(zip(encoded, self.writer.store(list(encoded.values())), strict=True))
        return results

    def pack(self, passing: Passing) -> Packed | None:
        # Storing a single chunk takes no longer than passing it to a process.
        if len(self.chunks) < 2:
            return None
        first = next(iter(self.chunks.values())).chunk
        size = first.nbytes
        lent = passing.lend(len(self.chunks) * size)
        if lent is None or (offset := passing.memory.offset(lent)) is None:
            return None
        memory = lent.data
        for i, (chunk, _) in enumerate(self.chunks.values()):
            # With the interpreter's lock held: to get it back would take longer than this copy.
            plain = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
            memory[i * size : (i + 1) * size] = plain.data
        place = Place(offset, first.dtype.str, (len(self.chunks), *first.shape))
        expected = [each.expected for each in self.chunks.values()]
        name, store_fill = self.array.name, self.writer.store_fill
        return Packed((name, store_fill, list(self.chunks), expected, place), lent)

    @classmethod
    def unpack(cls, worker: Worker, *values: Any) -> Self:
        name, store_fill, indices, expected, place = values
        chunks = map(NewChunk, worker.memory(place), expected)
        writer = worker.writer(name, store_fill=store_fill)
        return cls(writer, dict(zip(indices, chunks, strict=True)))

    def answer(self, result: Results) -> Any:
        """For each chunk, the new state of its object or None, and the error or None."""
        return [
            [None, answers.told(now)] if isinstance(now, ChunkError | StoreError) else [now, None]
            for now in map(result.__getitem__, self.chunks)
        ]

    def accept(self, answer: Any, lent: NDArray[np.uint8] | None) -> Results:
        results: dict[Index, Stored | ChunkError] = {}
        for index, one in zip(self.chunks, answers.items(answer, len(self.chunks)), strict=True):
            now, failure = answers.items(one, 2)
            results[index] = answers.generation(now) if failure is None else answers.error(failure)
        return results
