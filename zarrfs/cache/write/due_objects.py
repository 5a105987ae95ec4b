"""The objects of one array that are scheduled to be stored, and the jobs that store them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from zarrfs.cache.write.write_back import WriteBack
from zarrfs.format.chunk_grid import Index


@dataclass(eq=False)
class DueObjects:
    """Thread-safe.

    Each batch costs a message to a worker process, and a step that makes its objects durable. So
    idle threads divide what is due, and a batch is as large as it may be without leaving one idle.

    most : objects of one batch.
    store : stores a batch; handles its own errors.

    Shared state: ``_due``, the objects in their order; ``_busy``, an entry for each thread that
    stores some. Each operation on a deque is atomic.
    """

    write_back: WriteBack
    most: int
    store: Callable[[Sequence[Index]], None]
    _due: deque[Index] = field(default_factory=deque)
    _busy: deque[None] = field(default_factory=deque)

    def add(self, objects: Sequence[Index]) -> None:
        """Have these objects, and those that are due, stored soon. Does not block."""
        self._due.extend(objects)
        for _ in range(min(max(len(objects), bool(self._due)), self.write_back.flushers)):
            self.write_back.submit(self._run, ahead=True)

    def _run(self) -> None:
        """Store a batch; there may be more jobs than due objects."""
        group: list[Index] = []
        share = -(-len(self._due) // max(1, self.write_back.flushers - len(self._busy)))
        self._busy.append(None)
        try:
            while len(group) < min(share, self.most):
                group.append(self._due.popleft())
        except IndexError:
            pass  # other threads have taken them
        try:
            if group:
                self.store(group)
        finally:
            self._busy.pop()
            if self._due:
                self.write_back.submit(self._run, ahead=True)
