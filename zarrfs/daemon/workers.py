"""The worker processes of a mount."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing, suppress
from typing import NamedTuple

import numcodecs  # noqa: F401 - once for all workers, most of which decode with it

from zarrfs.array.assumed_metadata import assume_metadata
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.daemon.hung_mount import free_connection, serialized
from zarrfs.daemon.options.options import MountOptions
from zarrfs.daemon.request import MountRequest
from zarrfs.daemon.source.any_directory import guard, holds_others
from zarrfs.errors import ZarrfsError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fuse.connection import Connection
from zarrfs.jobs.channel import DEFAULT_PATIENCE_S
from zarrfs.jobs.nursery import Nursery
from zarrfs.jobs.worker import WorkerConfig
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.default_memory import default_memory
from zarrfs.memory.shared_memory import SharedMemory
from zarrfs.store.base import Store
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig, local_directory, open_store

# One stream does not feed more.
_MOST = 8


class Forked(NamedTuple):
    """Processes that are forked before the first thread.

    nursery : None where nothing could be forked.
    workers : None where there should be none, or cannot be.
    """

    nursery: Nursery | None
    workers: WorkerPool | None

    def at_death(self, connection: Connection | None) -> None:
        """Have this connection freed where the daemon is killed and cannot end by itself."""
        if self.nursery is not None:
            to_free = ("", ()) if connection is None else (serialized(connection), connection.files)
            self.nursery.at_death(*to_free)

    def close(self) -> None:
        """End all of them."""
        if self.workers is not None:
            self.workers.close()
        if self.nursery is not None:
            self.nursery.close()


def fork_workers(request: MountRequest, patience: float = DEFAULT_PATIENCE_S) -> Forked:
    """Processes beside the daemon. Workers are for a local source.

    They share what is lent out for scans, and what is gathered of writes to shards. To be called
    before the first thread starts.

    patience : see `WorkerPool`.
    """
    options = request.options
    path = None if request.more or options.overlay is not None else local_directory(request.source)
    count = options.workers
    if count is None:
        processors = len(os.sched_getaffinity(0))
        # One more than can run, because each waits for its files now and then. Without it a scan of
        # two processors takes 6 % less processor time, but 14 % longer beside other work.
        count = min(processors + 1, _MOST) if processors > 1 else 0
    # Where arrays change their shape, what a worker knows of them would soon be old.
    if path is None or not count or options.resize:
        return _fork(0, None, patience)

    def open_again() -> Store:
        config = StoreConfig(follow_symlinks=options.follow_symlinks)
        store = open_store(path, config)
        if guarded:
            assert isinstance(store, LocalStore)
            guard(store, options)
        if options.assume_metadata is None:
            return store
        return assume_metadata(store, options.assume_metadata)

    before = _threads()
    guarded = _is_guarded(path, options)
    root = _root(open_again, options.zarr_format)
    # No child has any of the threads that an import started.
    if _threads() > before:
        return Forked(None, None)
    memory = options.memory or default_memory()
    try:
        shared = SharedMemory(memory)
    except OSError:
        return _fork(0, None, patience)
    config = WorkerConfig(open_again, options.zarr_format, shared, memory // 16 // count, root)
    return _fork(count, config, patience)


def _fork(count: int, config: WorkerConfig | None, patience: float) -> Forked:
    try:
        nursery = Nursery(config, free_connection, patience)
    except OSError:
        return Forked(None, None)
    if config is None:
        return Forked(nursery, None)
    try:
        pool = WorkerPool(count, nursery, config, patience)
    except OSError:
        return Forked(nursery, None)
    return Forked(nursery, pool)


def _is_guarded(path: str, options: MountOptions) -> bool:
    """Whether workers must keep from other users what the mount keeps from them."""
    with suppress(ZarrfsError):  # the mount reports the error
        config = StoreConfig(follow_symlinks=options.follow_symlinks)
        with closing(open_store(path, config)) as store:
            return holds_others(store, options)
    return True


def _root(open_store: Callable[[], Store], zarr_format: int | None) -> ArrayMetadata | None:
    """The metadata of the source if it is an array; they are kept without attributes.

    This also imports what the array's codecs need, once and not in each worker when a scan begins.
    """
    # Opening the array reports the error.
    with suppress(Exception), closing(open_store()) as store:
        metadata = Hierarchy(store, zarr_format).root().metadata
        if isinstance(metadata, ArrayMetadata):
            return metadata._replace(attributes={})
    return None


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))
