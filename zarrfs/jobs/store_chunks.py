"""The job that encodes and stores new objects: chunks, or whole shards of small chunks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject, Stored
from zarrfs.errors import ChunkError, StoreError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs import answers
from zarrfs.jobs.job import Packed
from zarrfs.jobs.worker import Worker
from zarrfs.memory.arena import Arena
from zarrfs.store.base import Expected

# Bytes of a chunk up to which processes store it in less time than threads: over 27 arrays with
# chunks of 64 to 256 KiB a median of 12 % less in memory, over 8 of them 7 % on a disk. Passing a
# larger one to a process costs about as much as the interpreter's lock: over 13 arrays with chunks
# of up to 2 MiB, 14 % less to 19 % more.
_SMALL_CHUNK = 256 << 10
# Decoded bytes of an object: a larger shard is encoded by several threads at once.
_LARGEST_OBJECT = 8 << 20


class NewObject(NamedTuple):
    """An object that is new as a whole.

    chunks : all of its read chunks that contain a part of the array.
    expected : the state that the object must be in; ANY if any state is accepted.
    """

    chunks: Mapping[Index, Chunk]
    expected: Expected


Results = Mapping[Index, Stored | ChunkError]
"""The new state of each object, None if it was removed; or the error."""


@dataclass(frozen=True, slots=True, eq=False)
class StoreChunks:
    """See `Job`.

    objects : with chunks of one shape.
    """

    writer: ChunkWriter
    objects: Mapping[Index, NewObject]

    @staticmethod
    def gains(array: Array) -> bool:
        """Whether worker processes store such chunks faster than threads.

        Storing a file takes a dozen system calls. In a thread, each call releases the interpreter's
        lock and waits for it again. So does each inner chunk of a shard when it is encoded.
        """
        layout = array.layout
        chunk, stored = layout.read.regular_shape, layout.stored.regular_shape
        if chunk is None or stored is None or layout.spec(stored).nbytes > _LARGEST_OBJECT:
            return False
        return 0 < layout.spec(chunk).nbytes <= _SMALL_CHUNK

    @property
    def array(self) -> Array:
        return self.writer.array

    def perform(self) -> Results:
        encoded: dict[Index, EncodedObject] = {}
        results: dict[Index, Stored | ChunkError] = {}
        for stored, (chunks, expected) in self.objects.items():
            try:
                encoded[stored] = self.writer.encode(stored, chunks, expected)
            except (ChunkError, StoreError) as error:
                results[stored] = error.without_frames()
            except ZarrfsError as error:
                results[stored] = ChunkError(self.array.key(stored), str(error))
        results.update(zip(encoded, self.writer.store(list(encoded.values())), strict=True))
        return results

    def pack(self, arena: Arena) -> Packed | None:
        chunks = [chunk for each in self.objects.values() for chunk in each.chunks.values()]
        # Storing a single chunk takes no longer than passing it to a process.
        if len(chunks) < 2:
            return None
        size = chunks[0].nbytes
        lent = arena.lend(len(chunks) * size, shared=True)
        if lent is None:
            return None
        stacked = lent.view(chunks[0].dtype).reshape(len(chunks), *chunks[0].shape)
        if (place := arena.place(stacked)) is None:
            return None
        memory = lent.data
        for i, chunk in enumerate(chunks):
            # With the interpreter's lock held: to get it back would take longer than this copy.
            plain = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
            memory[i * size : (i + 1) * size] = plain.data
        wanted = [(s, list(each.chunks), each.expected) for s, each in self.objects.items()]
        return Packed((self.array.name, self.writer.store_fill, wanted, place), lent)

    @classmethod
    def unpack(cls, worker: Worker, *values: Any) -> Self:
        name, store_fill, wanted, place = values
        chunks = iter(worker.memory.array(place))
        objects = {
            stored: NewObject(dict(zip(indices, islice(chunks, len(indices)), strict=True)), state)
            for stored, indices, state in wanted
        }
        writer = ChunkWriter(worker.array(name), store_fill=store_fill, largest_whole=0)
        return cls(writer, objects)

    def answer(self, result: Results) -> Any:
        """For each object, the new state of its object or None, and the error or None."""
        return [
            [None, answers.error_to_json(now)]
            if isinstance(now, ChunkError | StoreError)
            else [now, None]
            for now in map(result.__getitem__, self.objects)
        ]

    def accept(self, answer: Any) -> Results:
        results: dict[Index, Stored | ChunkError] = {}
        for stored, one in zip(self.objects, answers.items(answer, len(self.objects)), strict=True):
            now, failure = answers.items(one, 2)
            results[stored] = answers.generation(now) if failure is None else answers.error(failure)
        return results
