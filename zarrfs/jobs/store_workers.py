"""Whole chunks of one array, encoded and stored by worker processes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from zarrfs.array.array import Array
from zarrfs.array.chunk_writer import Stored
from zarrfs.errors import (
    StoreAccessDenied,
    StoreConflict,
    StoreError,
    StoreFull,
    StoreQuotaExceeded,
    StoreReadOnly,
    StoreTimeout,
    StoreTooLarge,
    StoreUnavailable,
)
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.array_workers import LARGE_CHUNK, ArrayWorkers
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.arena import Arena

_ERRORS: Mapping[str, type[StoreError]] = {
    kind.__name__: kind
    for kind in (
        StoreAccessDenied,
        StoreConflict,
        StoreFull,
        StoreQuotaExceeded,
        StoreReadOnly,
        StoreTimeout,
        StoreTooLarge,
        StoreUnavailable,
    )
}


class StoreWorkers:
    """Stores chunks that are objects of their own, in processes where that can be done.

    A file takes a dozen system calls, and each gives the interpreter's lock away and waits
    for it again, beside threads that want it as often and the event loop.
    """

    @classmethod
    def plan(
        cls, pool: WorkerPool, array: Array, number: int, *, store_fill: bool
    ) -> StoreWorkers | None:
        """None where threads are as good, or processes cannot.

        store_fill : as of `ChunkWriter`.
        """
        shape = array.layout.read.regular_shape
        if array.layout.sharded or shape is None:
            return None
        size = array.layout.spec(shape).nbytes
        if not 0 < size < LARGE_CHUNK:
            return None
        return cls(ArrayWorkers(pool, array, number, "stored"), size, store_fill)

    def __init__(self, workers: ArrayWorkers, size: int, store_fill: bool) -> None:
        self._workers = workers
        self._size = size
        self._store_fill = store_fill

    def store(self, chunks: Mapping[Index, Chunk], arena: Arena) -> dict[Index, Stored]:
        """Store whole chunks, whatever is stored there now. Blocks.

        What became of those that a process could do something about. Others may be stored
        or not.

        arena : of the memory to pass them in.
        """
        if not self._workers.able or not chunks:
            return {}
        size = self._size
        lent = arena.lend(len(chunks) * size, shared=True)
        if lent is None or (offset := self._workers.memory.offset(lent)) is None:
            return {}
        memory = lent.data
        for i, chunk in enumerate(chunks.values()):
            # With the interpreter's lock: to have it back would take longer than this.
            plain = np.ascontiguousarray(chunk).reshape(-1).view(np.uint8)
            memory[i * size : (i + 1) * size] = plain.data
        answer = self._workers.ask(
            {
                "task": "store",
                "offset": offset,
                "chunks": list(chunks),
                "store_fill": self._store_fill,
            }
        )
        if answer is None:
            return {}
        return {
            tuple(index): _stored(generation, error)
            for index, generation, error in answer["stored"]
        }


def _stored(generation: list[object] | None, error: list[str] | None) -> Stored:
    if error is not None:
        kind, key, reason = error
        return _ERRORS.get(kind, StoreError)(key, reason)
    return None if generation is None else tuple(generation)
