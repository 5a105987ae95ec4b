"""The job that decodes the chunks of a block into its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zarrfs.array.array import Array, ArrayName
from zarrfs.array.block import Block, RunRange, expanded, ranges
from zarrfs.array.block_reader import BlockRead, read_block
from zarrfs.errors import ChunkError
from zarrfs.jobs import answers
from zarrfs.jobs.job import BadAnswer, Packed
from zarrfs.jobs.worker import Worker
from zarrfs.memory.arena import Arena

# Bytes of a chunk from which on threads are faster than processes: they seldom wait for each other,
# and their memory costs less. docs/decisions/105 has the figures.
_LARGE_CHUNK = 192 << 10


@dataclass(frozen=True, slots=True, eq=False)
class ReadBlock:
    """See `Job`.

    seen : whether the caller needs to know which objects were read, in which state. A worker takes
        a while to report many objects.
    """

    array: Array
    block: Block
    seen: bool = True

    @staticmethod
    def gains(array: Array) -> bool:
        """Whether worker processes read such chunks faster than threads.

        Threads that do little between two steps wait for each other, and for the event loop, which
        keeps the interpreter's lock while the kernel copies a reply.
        """
        return array.layout.spec(array.layout.read.largest_chunk).nbytes < _LARGE_CHUNK or (
            array.light
        )

    def perform(self) -> BlockRead:
        return read_block(self.array, self.block)

    def pack(self, arena: Arena) -> Packed | None:
        if (place := arena.place(self.block.part)) is None:
            return None
        runs = tuple([ranges(along, along[0].target.start) for along in self.block.runs])
        return Packed((self.array.name, runs, place, self.block.carrier.str, self.seen))

    @classmethod
    def unpack(cls, worker: Worker, *values: Any) -> Self:
        name: ArrayName
        runs: Sequence[Sequence[RunRange]]
        name, runs, place, carrier, seen = values
        array = worker.array(name)
        # The shard indexes that the worker has may be out of date.
        array.forget_others()
        memory = worker.memory.array(place)
        return cls(array, Block(tuple(map(expanded, runs)), memory, np.dtype(carrier)), seen)

    def answer(self, result: BlockRead) -> Any:
        error = None if result.error is None else answers.error_to_json(result.error)
        return [result.seen if self.seen else [], result.chunks, result.decoded_bytes, error]

    def accept(self, answer: Any) -> BlockRead:
        objects, chunks, decoded_bytes, failure = answers.items(answer, 4)
        rank = len(self.block.runs)
        seen = []
        for one in answers.items(objects):
            stored, generation = answers.items(one, 2)
            seen.append((answers.index(stored, rank), answers.generation(generation)))
        error = None if failure is None else answers.error(failure)
        if not isinstance(error, ChunkError | None):
            raise BadAnswer(f"{failure!r:.100} is not an error of a chunk")
        count = self.block.count
        read = answers.number(chunks, count if error is None else 0, count)
        return BlockRead(seen, read, answers.number(decoded_bytes), error)
