"""A worker process: it performs jobs for the daemon, one after the other.

A worker keeps no state that could be out of date. It reads the metadata of an array at its first
job for that array, and refuses a job if they differ from the daemon's metadata. The metadata with
which it was forked need not be read if they are the daemon's.
"""

from __future__ import annotations

import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from zarrfs.array.array import Array, ArrayName
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.shards.parts import PartCache
from zarrfs.errors import FormatError, NodeNotFound, ZarrfsError
from zarrfs.format.metadata.kept import UseConsolidated
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.jobs.channel import Channel
from zarrfs.memory.allocator import keep_freed_memory
from zarrfs.memory.shared_memory import SharedMemory
from zarrfs.store.base import Store
from zarrfs.store.wrappers.timed import StoreTimes, TimedStore

_MOST_ARRAYS = 16


class WorkerConfig(NamedTuple):
    """The settings of all workers of a mount.

    open_store : opens the daemon's store once more.
    zarr_format : as in `Hierarchy`.
    memory : shared with the daemon.
    shard_indexes : bytes that shard indexes may take in each worker.
    root : the metadata of the source if it is an array. Workers that are forked with them need not
        read and check them, which takes up to 16 ms in each.
    """

    open_store: Callable[[], Store]
    zarr_format: int | None
    memory: SharedMemory
    shard_indexes: int
    root: ArrayMetadata | None = None


def work(channel: Channel, config: WorkerConfig) -> None:
    """Answer jobs until the daemon ends.

    An answer is a list in JSON: the reason why the job cannot be done, or null; the value of
    `Job.answer`; the arguments of `StoreTimes.add`. `marshal` would be 3 % faster, but is not safe
    against damaged input.
    """
    keep_freed_memory()
    worker = Worker(config)
    while (message := channel.receive()) is not None:
        why = answer = None
        try:
            answer = worker.perform(message)
        except ZarrfsError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - a thread of the daemon repeats the job
            why = repr(error)
        channel.send(json.dumps([why, answer, worker.times.take()]).encode())
    worker.close()


class Worker:
    """Performs jobs, and opens the arrays that they name.

    memory : shared with the daemon.
    times : of requests to the store.
    """

    def __init__(self, config: WorkerConfig) -> None:
        self.memory = config.memory
        self._config = config
        self._store: TimedStore | None = None
        self.times = StoreTimes()
        self._parts = PartCache(config.shard_indexes)
        self._arrays: OrderedDict[ArrayName, Array] = OrderedDict()

    def perform(self, message: bytes) -> Any:
        """The answer of a job."""
        kind, values = pickle.loads(message)  # noqa: S301 - from the daemon
        job = kind.unpack(self, *values)
        return job.answer(job.perform())

    def array(self, name: ArrayName) -> Array:
        """The array of that name. Raises ZarrfsError if its metadata have changed."""
        if (array := self._arrays.get(name)) is not None:
            self._arrays.move_to_end(name)
            return array
        if self._store is None:
            self._store = TimedStore(self._config.open_store(), self.times)
        metadata = None if name.path else self._config.root
        if metadata is None or metadata.fingerprint != name.fingerprint:
            metadata = self._read(self._store, name)
        array = Array(self._store, name.path, metadata, self._parts, name.config)
        self._arrays[name] = array
        if len(self._arrays) > _MOST_ARRAYS:
            self._arrays.popitem(last=False)
        return array

    def _read(self, store: Store, name: ArrayName) -> ArrayMetadata:
        uses: tuple[UseConsolidated, ...] = ("never", "auto")
        for consolidated in uses:
            hierarchy = Hierarchy(store, self._config.zarr_format, consolidated=consolidated)
            with suppress(NodeNotFound):
                metadata = hierarchy.reach(name.path).metadata
                if isinstance(metadata, ArrayMetadata) and metadata.fingerprint == name.fingerprint:
                    return metadata
        raise FormatError("the metadata have changed")

    def close(self) -> None:
        """Leave nothing behind in the store."""
        if self._store is not None:
            self._store.close()
