"""Builds the caches, the threads and the write-back for the arrays of one store."""

from __future__ import annotations

import logging
import math
import weakref
from bisect import bisect_left
from collections.abc import Sequence
from os import cpu_count
from threading import Lock
from typing import NamedTuple

from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.array.shards.parts import PartCache
from zarrfs.cache.read.array_chunks import CHUNK_OVERHEAD
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.stats import Stats
from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.cache.write.write_back import WriteBack
from zarrfs.errors import BudgetExceeded, StoreError, StoreReadOnly
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.jobs.executor import Processes
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.budget import MemoryBudget
from zarrfs.store.base import Store
from zarrfs.threads import ThreadPool

log = logging.getLogger(__name__)

_MIB = 1 << 20
_REMOTE_LOADERS = 32
_LOCAL_RECHECK = 1.0
_REMOTE_RECHECK = 30.0


class CacheConfig(NamedTuple):
    """How arrays are read and written; `zarrfs.fs.config` has the details.

    memory : bytes for decoded chunks, shard indexes, changes and chunks that are being decoded.
    loaders : threads that fetch and decode; None: chosen from the processor count and the store.
    recheck : seconds for which the state of a stored object is trusted; None: 1 for a local store,
        30 for a remote one.
    spill : directory for decoded chunks and for sequential writes that ``memory`` has no room for;
        None: no such directory.
    """

    memory: int
    loaders: int | None = None
    fill_missing: bool = True
    recheck: float | None = None
    writable: bool = False
    store_fill: bool = False
    flush_delay: float = 5.0
    spill: str | None = None


class Shares(NamedTuple):
    """How the memory of a mount is divided, beside `nodes_share`, in bytes.

    indexes : for shard indexes, so that chunks cannot evict them.
    changes : for changes, so that readers and writers cannot evict each other's memory. A row of
        chunks of up to that size is gathered in memory.
    storing : for objects that are being stored, so that storing never waits for other changes to be
        stored.
    chunks : the rest, for decoded chunks and decoding.
    """

    indexes: int
    changes: int
    storing: int
    chunks: int


def nodes_share(memory: int) -> int:
    """Bytes, of ``memory``, for groups and arrays that nobody uses at the moment."""
    return memory // 32


class Caches:
    """Threads and memory for the arrays of one store. The store belongs to the caller.

    memory : bytes that all caches together may take; see `set_memory`.
    loaders : number of threads in ``pool``.
    write_back : None if the mount is read-only.
    """

    def __init__(
        self, store: Store, config: CacheConfig, workers: WorkerPool | None = None
    ) -> None:
        """``workers`` read the same store; `close` ends them.

        Raises StoreReadOnly if ``config.writable`` is set and the store is read-only.
        """
        if config.writable and (reason := store.read_only) is not None:
            raise StoreReadOnly(store.url, reason)
        self._store = store
        self._config = config
        self._workers = workers
        self.memory = config.memory
        self._arrays: weakref.WeakSet[CachedArray] = weakref.WeakSet()
        self._arrays_lock = Lock()
        self.stats = Stats()
        shares = self._shares(config.memory)
        self.parts = PartCache(shares.indexes)
        self.budget = MemoryBudget(shares.chunks)
        loaders = config.loaders
        if loaders is None:
            loaders = (cpu_count() or 1) + 1 if store.traits.near else _REMOTE_LOADERS
        self.loaders = loaders
        self.pool = ThreadPool(loaders, keeps=True)
        shared = None if workers is None else workers.memory
        self.cache = BlockCache(self.budget, self.pool, self.stats, config.spill, shared)
        passing = self.cache.arena
        self.write_back: WriteBack | None = None
        if config.writable:
            self._remove_leftovers()
            self.write_back = WriteBack(
                MemoryBudget(shares.changes),
                shares.storing,
                loaders,
                config.flush_delay,
                self.stats,
                shared,
                config.spill,
            )
            passing = self.write_back.passing
        self._processes = None if workers is None else Processes(workers, passing)

    def _shares(self, memory: int) -> Shares:
        workers = 0 if self._workers is None else self._workers.shard_indexes
        nodes = nodes_share(memory)
        indexes = memory // 8 - nodes
        changes = memory * 5 // 16 if self._config.writable else 0
        storing = memory // 8 if self._config.writable else 0
        chunks = memory - nodes - indexes - changes - storing - workers
        return Shares(indexes, changes, storing, chunks)

    def set_memory(self, memory: int) -> None:
        """Change how many bytes all caches together may take. Blocks.

        Open files keep the slabs that were planned for them, as long as memory suffices.

        Raises BudgetExceeded, and changes nothing, if an open array needs more.
        """
        shares = self._shares(memory)
        if self._workers is not None and shares.chunks < memory // 8:
            raise BudgetExceeded(
                f"the worker processes of this mount keep up to {self._workers.shard_indexes} "
                f"bytes, which leaves too little of {memory}"
            )
        arrays = self._all_arrays()
        if (misfit := self._misfit(arrays, memory)) is not None:
            # All arrays fit into what is in force.
            more = range(memory // _MIB + 1, self.memory // _MIB)
            fits = bisect_left(more, True, key=lambda m: self._misfit(arrays, m << 20) is None)
            raise BudgetExceeded(f"{misfit} (memory={more.start + fits}M would do)") from misfit
        self.memory = memory
        self._config = self._config._replace(memory=memory)
        self.parts.resize(shares.indexes)
        self.budget.resize(shares.chunks)
        if self.write_back is not None:
            self.write_back.resize(shares.changes, shares.storing)
        for array in arrays:
            array.array.set_memory(self.largest_load)

    def _misfit(self, arrays: Sequence[CachedArray], memory: int) -> BudgetExceeded | None:
        """The error of the first open array that needs more than ``memory`` bytes."""
        try:
            for array in arrays:
                self._check_fits(array, self._shares(memory))
        except BudgetExceeded as error:
            return error
        return None

    def _check_fits(self, array: CachedArray, shares: Shares) -> None:
        path = array.array.path
        try:
            # The constructor checks the memory that one chunk takes.
            Array(
                self._store,
                path,
                array.array.metadata,
                PartCache(shares.indexes),
                array.array.config._replace(memory=shares.chunks - CHUNK_OVERHEAD),
            )
        except BudgetExceeded as error:
            raise BudgetExceeded(f"/{path}: {error}") from error
        if isinstance(array, WritableArray) and array.largest_change > shares.changes:
            raise BudgetExceeded(
                f"/{path}: changing one chunk takes {array.largest_change} bytes, there would be "
                f"room for {shares.changes}"
            )

    def drop(self) -> None:
        """Drop all decoded chunks, and trust no earlier state of stored objects. Blocks.

        Changes that are not stored yet stay.
        """
        for array in self._all_arrays():
            array.distrust()
        self.parts.clear()
        self.budget.shrink()
        if self.write_back is not None:
            self.write_back.budget.shrink()

    def open(
        self,
        path: str,
        metadata: ArrayMetadata,
        *,
        document: str | None = None,
        read_only: bool = False,
    ) -> CachedArray:
        """The array at ``path`` of the store; a `WritableArray` if the mount can write to it.

        document : see `ArrayConfig`.
        read_only : others write to it, so that each look at it asks the store.

        Raises BudgetExceeded if a single chunk does not fit.
        """
        config = self._config
        array = Array(
            self._store,
            path,
            metadata,
            self.parts,
            ArrayConfig(self.largest_load, config.fill_missing, document),
        )
        recheck = math.inf if self._store.traits.immutable else config.recheck
        if recheck is None:
            recheck = _LOCAL_RECHECK if self._store.traits.near else _REMOTE_RECHECK
        if read_only or self.write_back is None or not array.layout.data_type.fixed_size:
            recheck = 0 if read_only else recheck
            cached = CachedArray(self.cache, array, recheck, self._processes)
        else:
            writer = ChunkWriter(
                array,
                # Without `fill_missing` a missing chunk is an error, so chunks of fill values are
                # stored.
                store_fill=config.store_fill or not config.fill_missing,
                largest_whole=config.memory // 8,
                each=self.write_back.each,
            )
            cached = WritableArray(
                self.cache, array, recheck, self.write_back, writer, self._processes
            )
        with self._arrays_lock:
            self._arrays.add(cached)
        return cached

    def forget(self, array: CachedArray) -> None:
        """The array is not in use: `set_memory` need not ask whether it fits. Does not block."""
        with self._arrays_lock:
            self._arrays.discard(array)

    def _all_arrays(self) -> list[CachedArray]:
        with self._arrays_lock:
            return list(self._arrays)

    @property
    def largest_load(self) -> int:
        """The most bytes that loading one chunk may take."""
        return self.budget.total - CHUNK_OVERHEAD

    def close(self) -> None:
        """Stop the threads. Changes that are not stored are lost."""
        if self.write_back is not None:
            self.write_back.close()
        self.pool.close()
        if self._workers is not None:
            self._workers.close()
            if self.write_back is not None:
                # No later writer may come that would remove what a killed worker left behind.
                try:
                    self._remove_leftovers()
                except StoreError as error:
                    log.warning("what killed writers left behind cannot be removed: %s", error)
        self.cache.clear()

    def _remove_leftovers(self) -> None:
        for leftover in self._store.leftovers(remove=True):
            log.info("removed what a killed writer left behind: %s", leftover)
