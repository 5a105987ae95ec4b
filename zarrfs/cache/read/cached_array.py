"""One array whose chunks are cached."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from zarrfs.array.array import Array
from zarrfs.cache.read.chunk_cache import ChunkCache, Deliver
from zarrfs.cache.read.decoded_chunks import ENTRY_OVERHEAD
from zarrfs.cache.read.freshness import Freshness
from zarrfs.cache.read.member import Member
from zarrfs.cache.read.scan import Scanner
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Executor, executor_of
from zarrfs.jobs.read_block import ReadBlock
from zarrfs.jobs.ticket import Done
from zarrfs.store.base import Generation

_numbers = count(1)


class CachedArray:
    """An array whose chunks are cached.

    number : tells it from the other arrays of the cache.
    freshness : whether what was read from it is still current.
    scan : see `Scanner.scan`.
    run : run a job in a loader thread; see `LoaderPool.submit`.
    shares_memory : whether memory for scans should be shared with worker processes.
    """

    def __init__(
        self,
        cache: ChunkCache,
        array: Array,
        recheck: float,
        processes: Executor | None = None,
    ) -> None:
        """
        processes : to perform jobs where they are faster; None: threads do it all.
        """
        self.array = array
        self.number = next(_numbers)
        self.freshness = Freshness(array, recheck)
        self._cache = cache
        self._chunks = cache.chunks
        self._member = Member(self.number, array, self.freshness)
        executor = executor_of(ReadBlock, array, processes)
        self.shares_memory = executor.shares_memory
        self.scan = Scanner(cache, self._member, executor).scan
        self.run = cache.pool.submit
        self._told = self.freshness.epoch

    @property
    def largest_load(self) -> int:
        """The most bytes of the budget that loading one chunk takes."""
        array = self.array
        largest = array.cost(array.layout.read.largest_chunk) + array.shard_cost
        return largest + ENTRY_OVERHEAD

    def get(self, index: Index) -> Chunk | None:
        """A chunk that is decoded and fresh; does not block."""
        return self._chunks.get((self.number, index), self.freshness.not_before)

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None:
        """Several chunks; None if one of them is not at hand, or not fresh."""
        return self._chunks.get_all(self.number, indices, self.freshness.not_before)

    def get_row(self, index: Index, last: Sequence[int]) -> Sequence[memoryview] | None:
        """Several chunks as bytes; see `DecodedChunks.get_row`."""
        return self._chunks.get_row(self.number, index, last, self.freshness.not_before)

    def get_bytes(self, index: Index) -> memoryview | None:
        """The bytes of a chunk for a reader of its own file; see `DecodedChunks.get_bytes`."""
        return self._chunks.get_bytes((self.number, index), self.freshness.not_before)

    def passed(self, index: Index) -> None:
        """The file of a chunk was loaded and read; see `DecodedChunks.passed`."""
        self._chunks.passed((self.number, index))

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: bool = True,
        ahead: bool = False,
    ) -> None:
        """See `ChunkCache.request`."""
        self._cache.request(self._member, indices, deliver, done, keep=keep, ahead=ahead)

    def set_memory(self, memory: int) -> None:
        """See `Array.set_memory`."""
        self.array.set_memory(memory)

    @property
    def state(self) -> tuple[int, ...]:
        """Differs whenever chunks may hold something else than before."""
        return (self.freshness.epoch,)

    def stored_anew(self, stored: Index, generation: Generation | None) -> None:
        """A stored object was replaced from here, and is in this state now."""
        self.freshness.wrote(stored, generation)
        self.array.forget([stored])
        self._cache.drop_stored(self._member, {stored}, loading=True)

    def distrust(self) -> None:
        """Forget everything that was read: the array has been resized."""
        self.freshness.expire()
        self._cache.drop_array(self._member)

    def check(self) -> bool:
        """Ask the store for changes, if it is time. May block.

        Whether what was handed out may be old, because changes were found since the
        last time or cannot be ruled out.
        """
        changed = set(self.freshness.check())
        if changed:
            self._cache.drop_stored(self._member, changed)
        told, self._told = self._told, self.freshness.epoch
        return told != self._told
