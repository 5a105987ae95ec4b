"""What a worker process does: it decodes blocks into memory that it shares with the daemon,
and stores chunks out of it.

The daemon sends jobs and gets an answer to each, as JSON behind their length. A worker
keeps nothing that could be out of date: it reads metadata when it first hears of an array,
and answers that it is unable where they are not those that the daemon has; what it knows
of shards it forgets after each job.
"""

from __future__ import annotations

import json
import socket
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from struct import Struct
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.block import Block, Run
from zarrfs.array.block_reader import BlockRead, read_blocks
from zarrfs.array.chunk_writer import ChunkWriter, EncodedObject
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import StoreError, ZarrfsError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import ChunkSpec
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.memory.allocator import keep_freed_memory
from zarrfs.memory.shared_memory import SharedMemory, in_order
from zarrfs.store.base import ANY, Store
from zarrfs.store.wrappers.timed import StoreTimes, TimedStore

_LENGTH = Struct("<Q")
_LARGEST_MESSAGE = 64 << 20
_MOST_ARRAYS = 16


class WorkerConfig(NamedTuple):
    """What all workers of a mount have in common.

    open_store : the store that the daemon reads, opened once more.
    zarr_format : as `Hierarchy` takes it.
    shard_indexes : bytes that shard indexes may take in each worker.
    """

    open_store: Callable[[], Store]
    zarr_format: int | None
    shard_indexes: int


class Patience(Protocol):
    """How long one side of a channel waits for the other; see `zarrfs.jobs.patience`."""

    @property
    def look_after(self) -> float:
        """Seconds without a byte after which `lasts` is asked."""
        ...

    def begin(self) -> None:
        """A message is about to be sent, or waited for."""
        ...

    def lasts(self) -> bool:
        """Whether to wait for another ``look_after`` seconds."""
        ...


class Channel:
    """One end of a connection that carries JSON objects.

    patience : with the other side; None: it is waited for without end.
    """

    def __init__(self, connection: socket.socket, patience: Patience | None = None) -> None:
        self._connection = connection
        self._patience = patience
        if patience is not None:
            connection.settimeout(patience.look_after)

    def send(self, message: dict[str, Any]) -> None:
        """Raises OSError; TimeoutError where the other side takes nothing."""
        data = json.dumps(message).encode()
        view = memoryview(_LENGTH.pack(len(data)) + data)
        self._begin()
        while view:
            with self._patiently():
                view = view[self._connection.send(view) :]

    def receive(self) -> dict[str, Any] | None:
        """The next message; None where the other side has ended.

        Raises OSError; TimeoutError where the other side says nothing.
        """
        self._begin()
        head = self._read(_LENGTH.size)
        if head is None:
            return None
        (size,) = _LENGTH.unpack(head)
        if size > _LARGEST_MESSAGE or (data := self._read(size)) is None:
            return None
        message: dict[str, Any] = json.loads(data)
        return message

    def close(self) -> None:
        """The other side ends when it next looks."""
        self._connection.close()

    def _read(self, size: int) -> bytes | None:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            with self._patiently():
                count = self._connection.recv_into(view)
                if not count:
                    return None
                view = view[count:]
        return bytes(data)

    def _begin(self) -> None:
        if self._patience is not None:
            self._patience.begin()

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """What is done inside is to be done again where it took too long, unless this raises."""
        try:
            yield
        except TimeoutError:
            if self._patience is None or not self._patience.lasts():
                raise


def work(channel: Channel, memory: SharedMemory, config: WorkerConfig) -> None:
    """Answer jobs until the daemon ends."""
    keep_freed_memory()
    worker = _Worker(memory, config)
    while (job := channel.receive()) is not None:
        try:
            answer = worker.run(job)
        except ZarrfsError as error:
            answer = {"unable": str(error)}
        except Exception as error:  # noqa: BLE001 - the daemon then does it itself
            answer = {"unable": repr(error)}
        channel.send(answer | {"store": worker.take_times()})
    worker.close()


class _Worker:
    def __init__(self, memory: SharedMemory, config: WorkerConfig) -> None:
        self._memory = memory
        self._config = config
        self._store: TimedStore | None = None
        self._times = StoreTimes()
        self._parts = PartCache(config.shard_indexes)
        self._arrays: OrderedDict[int, Array] = OrderedDict()
        # What blocks are put together in whose memory is written to once.
        self._assembly: NDArray[np.uint8] | None = None

    def take_times(self) -> tuple[int, int, int, int, float]:
        """What the store was asked since the last time; see `StoreTimes.add`."""
        return self._times.take()

    def close(self) -> None:
        """Leave nothing behind in the store."""
        if self._store is not None:
            self._store.close()

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        if job["task"] == "encode":
            return self._encode_chunks(job)
        return self._store_chunks(job) if job["task"] == "store" else self._read_block(job)

    def _encode_chunks(self, job: dict[str, Any]) -> dict[str, Any]:
        """The length of each encoded chunk: 0 if none is to be stored, -1 if there was no room."""
        writer, spec = self._writer(job)
        plain = np.dtype(np.uint8)
        out = self._memory.array(job["out"], plain, [job["room"]], [1])
        self._memory.populate(out)
        chunks = {
            tuple(index): self._memory.array(offset, plain, [spec.nbytes], [1])
            .view(spec.dtype)
            .reshape(spec.shape)
            for index, offset in job["chunks"]
        }
        lengths: list[int] = []
        position = 0
        for data in writer.encoded_together(chunks):
            length = 0 if data is None else len(data)
            if position + length > len(out):
                length = -1
            elif data is not None:
                out.data[position : position + length] = data
                position += length
            lengths.append(length)
        return {"lengths": lengths, "used": position}

    def _store_chunks(self, job: dict[str, Any]) -> dict[str, Any]:
        writer, spec = self._writer(job)
        indices = [tuple(index) for index in job["chunks"]]
        size = len(indices) * spec.nbytes
        memory = self._memory.array(job["offset"], np.dtype(np.uint8), [size], [1])
        self._memory.populate(memory)
        chunks = memory.view(spec.dtype).reshape(-1, *spec.shape)
        encoded: dict[Index, EncodedObject] = {}
        for index, chunk in zip(indices, chunks, strict=True):
            # Whoever asked will find out by himself why one cannot be encoded.
            with suppress(ZarrfsError):
                encoded[index] = writer.encode(index, {index: chunk}, ANY)
        results = writer.store(list(encoded.values()))
        return {
            "stored": [
                (index, None, (type(result).__name__, result.key, result.reason))
                if isinstance(result, StoreError)
                else (index, result, None)
                for index, result in zip(encoded, results, strict=True)
            ]
        }

    def _writer(self, job: dict[str, Any]) -> tuple[ChunkWriter, ChunkSpec]:
        """What encodes and stores the chunks of a job's array, and what each of them is."""
        array = self._array(job)
        shape = array.layout.read.regular_shape
        assert shape is not None
        writer = ChunkWriter(array, store_fill=job["store_fill"], largest_whole=0)
        return writer, array.layout.spec(shape)

    def _read_block(self, job: dict[str, Any]) -> dict[str, Any]:
        array = self._array(job)
        block = Block(
            tuple(
                [Run(chunk, slice(*source), slice(*target)) for chunk, source, target in runs]
                for runs in job["runs"]
            ),
            self._memory.array(job["offset"], np.dtype(job["dtype"]), job["shape"], job["strides"]),
            np.dtype(job["carrier"]),
        )
        array.forget()
        if job["new_memory"]:
            read = self._read_to_new(array, block)
        else:
            self._memory.populate(block.part)
            read = read_blocks(array, block.split(array.layout, block.count))
        error = read.error
        return {
            "seen": read.seen if job["seen"] else [],
            "chunks": read.chunks,
            "decoded_bytes": read.decoded_bytes,
            "error": None if error is None else [error.key, error.reason],
        }

    def _read_to_new(self, array: Array, block: Block) -> BlockRead:
        """Put a block together in memory that is used again and again, and write it from there."""
        part = block.part
        if self._assembly is None or self._assembly.nbytes < part.nbytes:
            self._assembly = np.empty(part.nbytes, np.uint8)
        axes = in_order(part)
        memory = self._assembly[: part.nbytes].view(part.dtype)
        memory = memory.reshape([part.shape[axis] for axis in axes]).transpose(np.argsort(axes))
        read = read_blocks(array, block.moved(memory).split(array.layout, block.count))
        if read.error is None:
            self._memory.write(memory, part)
        return read

    def _array(self, job: dict[str, Any]) -> Array:
        """The array that a job is about. Raises ZarrfsError and ValueError."""
        name: int = job["number"]
        if (array := self._arrays.get(name)) is not None:
            self._arrays.move_to_end(name)
            return array
        if self._store is None:
            self._store = TimedStore(self._config.open_store(), self._times)
        path: str = job["path"]
        metadata = Hierarchy(self._store, self._config.zarr_format).reach(path).metadata
        if not isinstance(metadata, ArrayMetadata) or metadata.fingerprint != job["fingerprint"]:
            raise ValueError("the metadata have changed")
        config = ArrayConfig(job["memory"], job["fill_missing"])
        array = Array(self._store, path, metadata, self._parts, config)
        self._arrays[name] = array
        if len(self._arrays) > _MOST_ARRAYS:
            self._arrays.popitem(last=False)
        return array
