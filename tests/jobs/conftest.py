"""Jobs as a worker process performs them, without a process."""

import json
import pickle

import numpy as np
import pytest

from tests.fs.arrays import open_array
from tests.fs.documents import CRC32C, LITTLE, ZSTD, array_document, sharding
from tests.fs.write_store import WriteStore
from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.jobs.job import Job, Packed
from zarrfs.jobs.worker import Worker, WorkerConfig
from zarrfs.memory.shared_memory import SharedMemory

MIB = 1 << 20
SHAPE, CHUNKS, SHARDS = (20, 17), (3, 4), (6, 8)


class Place:
    """A store with an array of int16, shared memory, and a worker that has both.

    values : what the array holds at first, filled with 7 where it is not stored.
    """

    def __init__(self, *, sharded: bool) -> None:
        codecs = [LITTLE, ZSTD]
        document = (
            array_document(SHAPE, SHARDS, codecs=[sharding(CHUNKS, codecs=[*codecs, CRC32C])])
            if sharded
            else array_document(SHAPE, CHUNKS, codecs=codecs)
        )
        self.store = WriteStore({"zarr.json": document})
        self.array: Array = open_array(self.store)
        self.writer = ChunkWriter(self.array, store_fill=False, largest_whole=MIB)
        self.values = np.full(SHAPE, 7, "<i2")
        self.memory = SharedMemory(4 * MIB)
        self.place = self.memory.place
        self.worker = self.new_worker()
        self.room = True

    def new_worker(self, root: ArrayMetadata | None = None) -> Worker:
        """
        root : the metadata with which it is forked.
        """
        return Worker(WorkerConfig(lambda: self.store, None, self.memory, MIB, root))

    def fill(self) -> None:
        """Store numbers everywhere but in the first stored object."""
        values = np.arange(self.values.size, dtype="<i2").reshape(SHAPE)
        for stored in self._stored():
            chunks = {index: self.chunk(values, index) for index in self.indices(stored)}
            self.writer.write(stored, chunks, None)
            for index in chunks:
                part = self.part(index)
                self.values[part] = values[part]

    def _stored(self) -> list[tuple[int, int]]:
        found = {self.array.layout.stored_index(index) for index in self.all_indices()}
        return sorted(found - {(0, 0)})

    def all_indices(self) -> list[tuple[int, int]]:
        return list(np.ndindex(*(-(-n // c) for n, c in zip(SHAPE, CHUNKS, strict=True))))

    def indices(self, stored: tuple[int, int]) -> list[tuple[int, int]]:
        """Of the chunks in a stored object."""
        layout = self.array.layout
        return [index for index in self.all_indices() if layout.stored_index(index) == stored]

    @staticmethod
    def part(index: tuple[int, int]) -> tuple[slice, ...]:
        return tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, CHUNKS, strict=True))

    def chunk(self, values: np.ndarray, index: tuple[int, int]) -> np.ndarray:
        """A chunk of these values, in shared memory."""
        chunk = self.lend(2 * np.prod(CHUNKS)).view("<i2").reshape(CHUNKS)
        chunk[...] = 0
        inside = values[self.part(index)]
        chunk[tuple(map(slice, inside.shape))] = inside
        return chunk

    def lend(self, size: int, *, shared: bool = True) -> np.ndarray | None:
        return self.memory.take(int(size)) if self.room and shared else None

    def perform(self, packed: Packed, kind: type[Job]):
        """What a worker answers, as it comes over the wire."""
        message = pickle.dumps((kind, packed.values))
        return json.loads(json.dumps(self.worker.perform(message)))

    def through(self, job: Job):
        """The result of a job that a worker performed."""
        packed = job.pack(self)
        assert packed is not None
        return job.accept(self.perform(packed, type(job)))


@pytest.fixture(params=[False, True], ids=["chunks", "shards"])
def place(request) -> Place:
    return Place(sharded=request.param)
