"""The interface of all kinds of jobs.

A job names an array, chunks, memory and the work to do. `Job.perform` does the work, in a thread of
the daemon or in a worker process. A worker gets the result of `Job.pack` as a pickle: a worker
trusts the daemon. It answers in JSON, and `Job.accept` checks the answer: the worker has run
decoders on data that may be hostile, so the daemon trusts none of its answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.array import Array
from zarrfs.jobs.worker import Worker
from zarrfs.memory.arena import Arena

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Packed(NamedTuple):
    """A job for a worker process.

    values : picklable; the arguments of `Job.unpack`.
    lent : shared memory with data of the job, to be kept until the worker has answered.
    """

    values: tuple[Any, ...]
    lent: NDArray[np.uint8] | None = None


class Unable(Exception):
    """A worker process could not perform a job. The text is the reason."""


class NoAnswer(Exception):
    """No worker process has answered. The text is the reason."""


class BadAnswer(Exception):
    """The answer is not one that a correct worker process gives."""


class Job(Protocol[R_co]):
    """One kind of work on one array.

    array : the array.
    """

    @property
    def array(self) -> Array: ...

    @staticmethod
    def gains(array: Array) -> bool:
        """Whether worker processes are faster than threads, for chunks like those of this array."""
        ...

    def perform(self) -> R_co:
        """Do the work in this thread. Blocks."""
        ...

    def pack(self, arena: Arena) -> Packed | None:
        """The job for a worker process; None if that gains nothing or is impossible.

        arena : of memory that is shared with worker processes.
        """
        ...

    @classmethod
    def unpack(cls, worker: Worker, *values: Any) -> Self:
        """The job that `pack` has packed, in a worker process."""
        ...

    def answer(self, result: Any) -> Any:
        """The result of `perform` in a worker process, as JSON."""
        ...

    def accept(self, answer: Any) -> R_co:
        """The result of `perform`, from a worker's answer. Raises BadAnswer."""
        ...
