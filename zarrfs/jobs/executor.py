"""Performs jobs: in threads, or in worker processes, with threads for jobs these cannot do."""

from __future__ import annotations

import logging
import pickle
from typing import Any, TypeVar

from zarrfs.array.array import Array, ArrayName
from zarrfs.jobs.job import Job, NoAnswer, Unable
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.arena import Arena

log = logging.getLogger(__name__)

R = TypeVar("R")


class Processes:
    """Worker processes perform jobs for the threads, which wait for them.

    A thread performs a job itself if

    - `Job.pack` returns None: memory of the job is not shared, or passing it gains nothing;
    - no process is left, or the process with the job died, was silent, or gave an invalid answer;
    - a process could not do it. Threads then perform all later jobs of this array, too.

    arena : memory that passes jobs and answers if their own memory is not shared.
    """

    def __init__(self, pool: WorkerPool, arena: Arena) -> None:
        self._pool = pool
        self._arena = arena
        self._given_up: set[ArrayName] = set()

    def run(self, job: Job[R]) -> R:
        name = job.array.name
        packed = None if name in self._given_up else job.pack(self._arena)
        if packed is not None:
            message = pickle.dumps((type(job), packed.values))
            try:
                return self._pool.ask(message, job.accept)
            except Unable as error:
                self._given_up.add(name)
                log.info("%s is left to threads: %s", name.path or "the array", error)
            except NoAnswer:
                pass
        return job.perform()


def suited(kind: type[Job[Any]], array: Array, processes: Processes | None) -> Processes | None:
    """``processes`` if they perform such jobs of an array faster than threads, else None."""
    return processes if processes is not None and kind.gains(array) else None


def perform(job: Job[R], processes: Processes | None) -> R:
    """Perform a job, in this thread without ``processes``. Blocks. Raises as `Job.perform`."""
    return job.perform() if processes is None else processes.run(job)
