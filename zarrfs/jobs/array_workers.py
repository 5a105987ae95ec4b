"""Jobs of one array for worker processes."""

from __future__ import annotations

import logging
from typing import Any

from zarrfs.array.array import Array
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.shared_memory import SharedMemory

log = logging.getLogger(__name__)

# Bytes of a chunk from which on threads mostly are as good: they seldom wait for each other, and
# their memory costs less.
LARGE_CHUNK = 1 << 20


class ArrayWorkers:
    """Asks worker processes about one array until they are unable.

    number : tells the array from others of the same mount.
    task : what is asked, which threads do where processes cannot; for the log.
    able : whether to `ask` is worth a try.
    """

    def __init__(self, pool: WorkerPool, array: Array, number: int, task: str) -> None:
        self._pool = pool
        self._task = task
        self.able = True
        self._array = {
            "number": number,
            "path": array.path,
            "fingerprint": array.metadata.fingerprint,
            "memory": array.config.memory,
            "fill_missing": array.config.fill_missing,
        }

    @property
    def memory(self) -> SharedMemory:
        """What jobs and answers are passed in."""
        return self._pool.memory

    def ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a job; None where no process could give one. Blocks."""
        answer = self._pool.ask(self._array | job)
        if answer is None:
            return None
        if (reason := answer.get("unable")) is not None:
            self.able = False
            log.info(
                "%s is %s by threads: %s", self._array["path"] or "the array", self._task, reason
            )
            return None
        return answer
