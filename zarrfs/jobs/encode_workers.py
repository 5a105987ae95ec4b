"""Inner chunks of one array, encoded by worker processes."""

from __future__ import annotations

from collections.abc import Mapping

from zarrfs.array.array import Array
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Buffer, Chunk
from zarrfs.jobs.array_workers import LARGE_CHUNK, ArrayWorkers
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.arena import Arena

# Bytes of chunks that a process encodes at once: fewer are done before the next can be asked
# for, and of more there would be nothing left for the others.
_LEAST_TOGETHER = 256 << 10
_MOST_TOGETHER = 2 << 20
_MOST_CHUNKS = 1024
# Of one shard, there should be something for so many.
_SHARES = 4


class EncodeWorkers:
    """Encodes chunks that lie in memory which processes share; see `EncodesApart`.

    Threads that encode small chunks wait for the interpreter's lock after each of them, beside
    the event loop, and meanwhile nobody may encode. The shard is put together and stored by
    whoever asks.
    """

    @classmethod
    def plan(
        cls, pool: WorkerPool, array: Array, number: int, arena: Arena, *, store_fill: bool
    ) -> EncodeWorkers | None:
        """None where threads are as good, or processes cannot.

        arena : of the memory that encoded chunks are passed in.
        store_fill : as of `ChunkWriter`.
        """
        layout = array.layout
        shape = layout.read.regular_shape
        if not layout.sharded or shape is None:
            return None
        size = layout.spec(shape).nbytes
        if not 0 < size < LARGE_CHUNK or layout.chunk_codec(shape).light:
            return None
        return cls(ArrayWorkers(pool, array, number, "encoded"), size, arena, store_fill)

    def __init__(self, workers: ArrayWorkers, size: int, arena: Arena, store_fill: bool) -> None:
        self._workers = workers
        self._size = size
        self._arena = arena
        self._store_fill = store_fill

    def share(self, count: int) -> int:
        """See `EncodesApart`."""
        if not self._workers.able:
            return 1
        size = self._size
        share = max(_LEAST_TOGETHER // size, min(_MOST_TOGETHER // size, -(-count // _SHARES)))
        return max(1, min(share, _MOST_CHUNKS))

    def encode(self, chunks: Mapping[Index, Chunk]) -> Mapping[Index, Buffer | None]:
        """See `EncodesApart`. Blocks."""
        if not self._workers.able:
            return {}
        where = {
            index: offset
            for index, chunk in chunks.items()
            if chunk.flags.c_contiguous
            and (offset := self._workers.memory.offset(chunk)) is not None
        }
        # What is longer than it was is left to whoever asks, if there are many such.
        room = len(where) * (self._size + self._size // 16 + 1024)
        if not where or (lent := self._arena.lend(room, shared=True)) is None:
            return {}
        if (out := self._workers.memory.offset(lent)) is None:
            return {}
        answer = self._workers.ask(
            {
                "task": "encode",
                "chunks": list(where.items()),
                "store_fill": self._store_fill,
                "out": out,
                "room": room,
            }
        )
        if answer is None:
            return {}
        lengths: list[int] = answer["lengths"]
        data = memoryview(lent[: answer["used"]].tobytes())
        encoded: dict[Index, Buffer | None] = {}
        position = 0
        for index, length in zip(where, lengths, strict=True):
            if length >= 0:
                encoded[index] = data[position : position + length] if length else None
                position += length
        return encoded
