"""Arrays over any store, opened without a tree."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.shards.parts import PartCache
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.read.chunk_loads import Delivery
from zarrfs.cache.stats import Stats
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.memory.budget import MemoryBudget
from zarrfs.store.base import Store
from zarrfs.threads import ThreadPool

_SECONDS = 20
_PLENTY = 64 << 20


def open_array(
    store: Store, path: str = "", *, memory: int = _PLENTY, index_memory: int = 1 << 20
) -> Array:
    node = Hierarchy(store).node(path)
    assert node is not None
    assert isinstance(node.metadata, ArrayMetadata), node.problem
    return Array(store, path, node.metadata, PartCache(index_memory), ArrayConfig(memory))


@dataclass
class Fetch:
    """A request for chunks under way; the chunks that came are copies."""

    chunks: dict[Index, Chunk] = field(default_factory=dict)
    outcomes: list[ChunkError | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def deliver(self, delivery: Delivery) -> None:
        for index, chunk in delivery:
            assert index not in self.chunks
            self.chunks[index] = chunk.copy()

    def done(self, error: ChunkError | None) -> None:
        self.outcomes.append(error)
        self.over.set()

    def wait(self) -> Fetch:
        assert self.over.wait(_SECONDS), "the request was never answered"
        assert len(self.outcomes) == 1
        return self

    @property
    def error(self) -> ChunkError | None:
        return self.wait().outcomes[0]


class Cached:
    """One array behind a cache of its own."""

    def __init__(
        self, store: Store, budget: int = _PLENTY, *, loaders: int = 4, recheck: float = inf
    ) -> None:
        self.store = store
        self.budget = MemoryBudget(budget)
        self.stats = Stats()
        self.pool = ThreadPool(loaders)
        self.cache = BlockCache(self.budget, self.pool, self.stats)
        self.array = CachedArray(self.cache, open_array(store, memory=budget), recheck)

    def start(
        self, *indices: Index, deliver: Callable[[Index, Chunk], None] | None = None
    ) -> Fetch:
        fetch = Fetch()

        def each(delivery: Delivery) -> None:
            assert deliver is not None
            for index, chunk in delivery:
                deliver(index, chunk)

        self.array.request(indices, each if deliver else fetch.deliver, fetch.done)
        return fetch

    def read(self, index: Index) -> Chunk:
        """One chunk. Raises ChunkError."""
        fetch = self.start(index).wait()
        if fetch.outcomes[0] is not None:
            raise fetch.outcomes[0]
        return fetch.chunks[index]

    def held(self, indices: Sequence[Index]) -> list[Index]:
        """Which of the chunks are in memory. Does not change the order of use."""
        return [index for index in indices if self.array._chunks.peek(index) is not None]

    def settled_use(self) -> int:
        """Bytes of the budget in use when no load is under way any more; the last call."""
        self.pool.close()
        return self.budget.used

    def close(self) -> None:
        self.pool.close()
        self.cache.clear()
