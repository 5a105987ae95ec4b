"""What all kinds of jobs have in common.

A job says which array, which chunks, which memory, and what to do. `Job.perform` does it, in
a thread of the daemon as in a worker process. To a worker goes what `Job.pack` makes of it,
as a pickle: a worker trusts the daemon. Back comes JSON, and `Job.accept` checks it: the
worker has run decoders on data that may be hostile, so the daemon trusts nothing it says.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.jobs.worker import Worker
from zarrfs.memory.arena import Arena
from zarrfs.memory.shared_memory import SharedMemory

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# Bytes of a chunk from which on threads mostly are as good: they seldom wait for each other, and
# their memory costs less.
LARGE_CHUNK = 1 << 20


class Packed(NamedTuple):
    """A job for a worker process.

    values : picklable; what `Job.unpack` takes.
    lent : shared memory that holds data of the job, or is for its answer.
    """

    values: tuple[Any, ...]
    lent: NDArray[np.uint8] | None = None


class Passing(NamedTuple):
    """Memory that jobs are passed to worker processes in.

    memory : shared with them.
    arena : of such memory.
    """

    memory: SharedMemory
    arena: Arena

    def lend(self, size: int) -> NDArray[np.uint8] | None:
        """Shared memory of any content; None if there is no room now."""
        return self.arena.lend(size, shared=True)


class Unable(Exception):
    """A worker process could not perform a job. The text is why."""


class NoAnswer(Exception):
    """No worker process has answered. The text is why."""


class BadAnswer(Exception):
    """No worker process that does its job answers so."""


class Job(Protocol[R_co]):
    """One kind of work on one array.

    array : it is about.
    requests : how many requests to the store it makes at least, all of which may be in flight
        at once.
    """

    @property
    def array(self) -> Array: ...

    @property
    def requests(self) -> int: ...

    @staticmethod
    def gains(array: Array) -> bool:
        """Whether worker processes do it faster than threads, for chunks as this array has."""
        ...

    def perform(self) -> R_co:
        """Do it, in this thread. Blocks."""
        ...

    def pack(self, passing: Passing) -> Packed | None:
        """The job for a worker process; None where that gains nothing or cannot be."""
        ...

    @classmethod
    def unpack(cls, worker: Worker, *values: Any) -> Self:
        """What `pack` has packed, in a worker process."""
        ...

    def answer(self, result: Any) -> Any:
        """What `perform` has returned in a worker process, as JSON."""
        ...

    def accept(self, answer: Any, lent: NDArray[np.uint8] | None) -> R_co:
        """What `perform` would have returned, of a worker's answer. Raises BadAnswer."""
        ...
