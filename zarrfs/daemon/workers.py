"""The worker processes of a mount."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from zarrfs.array.assumed_metadata import assume_metadata
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.daemon.request import MountRequest
from zarrfs.jobs.patience import DEFAULT_PATIENCE_S
from zarrfs.jobs.worker import WorkerConfig
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.default_memory import default_memory
from zarrfs.memory.shared_memory import SharedMemory
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, local_directory, open_store

# One stream does not feed more.
_MOST = 8
# Threads of each that wait for the disk while it decodes.
_OPENERS = 4


def fork_workers(request: MountRequest, patience: float = DEFAULT_PATIENCE_S) -> WorkerPool | None:
    """Processes for a local source; None where there should be none, or cannot be.

    They share what is lent out for scans, and what is gathered of writes to shards. To be called
    before the first thread starts.

    patience : see `WorkerPool`.
    """
    options = request.options
    path = local_directory(request.source)
    count = options.workers
    if count is None:
        processors = len(os.sched_getaffinity(0))
        # One more than can run, because each waits for its files now and then.
        count = min(processors + 1, _MOST) if processors > 1 else 0
    # Where arrays change their shape, what a worker knows of them would soon be old.
    if path is None or not count or options.resize:
        return None

    def open_again() -> Store:
        config = StoreConfig(follow_symlinks=options.follow_symlinks, openers=_OPENERS)
        store = open_store(path, config)
        if options.assume_metadata is None:
            return store
        return assume_metadata(store, options.assume_metadata)

    if not _imported(open_again, options.zarr_format):
        return None
    memory = options.memory or default_memory()
    config = WorkerConfig(open_again, options.zarr_format, memory // 16 // count)
    try:
        return WorkerPool(count, SharedMemory(memory), config, patience)
    except OSError:
        return None


def _imported(open_store: Callable[[], Store], zarr_format: int | None) -> bool:
    """Import what the array's codecs need, once and not in each worker when a scan begins.

    False where that started threads, of which no child has any.
    """
    before = _threads()
    # Opening the array reports the error.
    with suppress(Exception):
        store = open_store()
        try:
            Hierarchy(store, zarr_format).root()
        finally:
            store.close()
    return _threads() <= before


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))
