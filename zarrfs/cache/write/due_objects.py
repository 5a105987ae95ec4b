"""The objects of one array that are scheduled to be stored, and the jobs that store them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from zarrfs.cache.write.write_back import WriteBack
from zarrfs.format.chunk_grid import Index
from zarrfs.locks import Rank, ranked_lock


class DueObjects:
    """Thread-safe.

    A batch is as large as it may be without leaving another thread idle: each batch costs a message
    to a worker process, and a step that makes its objects durable.

    Shared state, under ``_lock``: ``_due``, the objects in their order; ``_queued`` and ``_busy``,
    how many jobs wait for a thread and how many store objects. Together they are at most as many as
    there are flusher threads.
    """

    def __init__(
        self, write_back: WriteBack, most: int, store: Callable[[Sequence[Index]], None]
    ) -> None:
        """
        most : objects of one batch.
        store : stores a batch; handles its own errors.
        """
        self._write_back = write_back
        self._most = most
        self._store = store
        self._due: deque[Index] = deque()
        self._queued = 0
        self._busy = 0
        self._lock = ranked_lock(Rank.FLUSHER)

    def add(self, objects: Sequence[Index]) -> None:
        """Have these objects stored soon. Does not block."""
        with self._lock:
            self._due.extend(objects)
            jobs = self._more_jobs()
        self._submit(jobs)

    def _run(self) -> None:
        with self._lock:
            idle = max(1, self._write_back.flushers - self._busy)
            # There may be more jobs than due objects.
            count = min(-(-len(self._due) // idle), self._most)
            group = [self._due.popleft() for _ in range(count)]
            self._queued -= 1
            self._busy += 1
            jobs = self._more_jobs()
        self._submit(jobs)
        try:
            if group:
                self._store(group)
        finally:
            with self._lock:
                self._busy -= 1
                jobs = self._more_jobs()
            self._submit(jobs)

    def _more_jobs(self) -> int:
        """How many jobs the caller must submit. With the lock held."""
        wanted = min(len(self._due), self._write_back.flushers - self._busy)
        jobs = max(0, wanted - self._queued)
        self._queued += jobs
        return jobs

    def _submit(self, jobs: int) -> None:
        """Without the lock: a closed pool runs them in this thread."""
        for _ in range(jobs):
            self._write_back.submit(self._run, ahead=True)
