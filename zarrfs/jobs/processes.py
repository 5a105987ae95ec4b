"""Has worker processes read blocks, and threads those that these cannot read."""

from __future__ import annotations

import logging
import pickle

from zarrfs.array.array import ArrayName
from zarrfs.array.block_reader import BlockRead
from zarrfs.jobs.answers import NoAnswer, Unable
from zarrfs.jobs.read_block import ReadBlock
from zarrfs.jobs.worker_pool import WorkerPool

log = logging.getLogger(__name__)


class Processes:
    """Worker processes perform jobs for the threads, which wait for them.

    A thread performs a job itself if

    - memory of the job is not shared;
    - no process is left, or the process with the job died, was silent, or gave an invalid answer;
    - a process could not do it. Threads then perform all later jobs of this array, too.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._given_up: set[ArrayName] = set()

    def run(self, job: ReadBlock) -> BlockRead:
        """Perform a job. Blocks."""
        name = job.array.name
        packed = None if name in self._given_up else job.pack(self._pool.memory)
        if packed is not None:
            try:
                return self._pool.ask(pickle.dumps((ReadBlock, packed)), job.accept)
            except Unable as error:
                self._given_up.add(name)
                log.info("%s is left to threads: %s", name.path or "the array", error)
            except NoAnswer:
                pass
        return job.perform()
