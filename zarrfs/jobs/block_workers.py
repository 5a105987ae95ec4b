"""Blocks of one array, read by worker processes."""

from __future__ import annotations

from zarrfs.array.array import Array
from zarrfs.array.block import Block
from zarrfs.array.block_reader import BlockRead
from zarrfs.errors import ChunkError
from zarrfs.jobs.array_workers import ArrayWorkers
from zarrfs.jobs.worker_pool import WorkerPool


class BlockWorkers:
    """Reads blocks of one array in processes, where that can be done.

    number : tells the array from others of the same mount.
    """

    def __init__(self, pool: WorkerPool, array: Array, number: int) -> None:
        self._workers = ArrayWorkers(pool, array, number, "decoded")

    def can(self, block: Block) -> bool:
        """Whether `read` is worth a try: the block lies in shared memory."""
        return self._workers.able and self._workers.memory.offset(block.target) is not None

    def read(self, block: Block, *, seen: bool) -> BlockRead | None:
        """Have a block filled; None where no process could. Blocks.

        seen : whether anybody wants to know what was read, which takes a while to say of many
            small objects.
        """
        memory = block.target
        answer = self._workers.ask(
            {
                "task": "read",
                "seen": seen,
                "new_memory": block.new_memory and self._workers.memory.file is not None,
                "runs": [
                    [(chunk, _ends(source), _ends(target)) for chunk, source, target in runs]
                    for runs in block.runs
                ],
                "offset": self._workers.memory.offset(memory),
                "dtype": memory.dtype.str,
                "shape": memory.shape,
                "strides": memory.strides,
                "carrier": block.carrier.str,
            }
        )
        if answer is None:
            return None
        error = answer["error"]
        return BlockRead(
            [
                (tuple(stored), None if generation is None else tuple(generation))
                for stored, generation in answer["seen"]
            ],
            answer["chunks"],
            answer["decoded_bytes"],
            None if error is None else ChunkError(*error),
        )


def _ends(part: slice) -> tuple[int, int]:
    return part.start, part.stop
