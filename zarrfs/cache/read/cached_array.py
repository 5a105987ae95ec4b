"""One array whose chunks are cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from zarrfs.array.array import Array
from zarrfs.array.block import Block
from zarrfs.array.making.array_documents import StoredEncoding
from zarrfs.cache.read.array_chunks import CHUNK_OVERHEAD, Freshness, NotCached
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.chunk_loads import ChunkLoads, Deliver
from zarrfs.cache.read.flights import Done, Keep
from zarrfs.cache.read.part_reads import PartReads
from zarrfs.cache.read.scan import Scanner
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Processes, suited
from zarrfs.jobs.read_block import ReadBlock
from zarrfs.store.base import Generation


class CachedArray:
    """An array whose chunks are cached.

    freshness : whether data read from the array are still current.
    shares_memory : whether memory for scans should be shared with worker processes.
    in_thread, failure : see `ChunkLoads`.
    """

    def __init__(
        self,
        cache: BlockCache,
        array: Array,
        recheck: float,
        processes: Processes | None = None,
    ) -> None:
        """
        recheck : seconds for which the state of a stored object is trusted.
        processes : performs jobs where worker processes are faster; None: threads perform all jobs.
        """
        self.cache = cache
        self.array = array
        self.freshness = Freshness(array, recheck)
        self._encoding = StoredEncoding(array)
        self._loads = ChunkLoads(cache, array, self.freshness)
        self._chunks = self._loads.chunks
        self.in_thread, self.failure = self._loads.in_thread, self._loads.failure
        self._parts = PartReads.plan(self._loads)
        processes = suited(ReadBlock, array, processes)
        self.shares_memory = processes is not None
        self._scanner = Scanner(self._loads, processes)
        self.scan_memory = self._scanner.memory
        self._reported_epoch = self.freshness.epoch

    @property
    def clean(self) -> bool:
        """Whether all changes are stored. Does not block."""
        return True

    def retire(self) -> None:
        """No program will write to the array again. Does not block."""

    def drop(self, indices: Sequence[Index] | None = None) -> None:
        """Forget these chunks; None: all. Does not block."""
        self._loads.drop(indices)

    @property
    def largest_load(self) -> int:
        """The most bytes of the budget that loading one chunk takes."""
        array = self.array
        largest = array.decoder.cost(array.layout.read.largest_chunk) + array.shard_cost
        return largest + CHUNK_OVERHEAD

    @property
    def state(self) -> tuple[int, ...]:
        """Differs from an earlier value whenever the content of chunks may have changed."""
        return (self.freshness.epoch,)

    @property
    def part_reads(self) -> PartReads | None:
        """Delivers parts of chunks, or chunks as `request` does; None if that does not pay now."""
        parts = self._parts
        return parts if parts is not None and parts.pay and self.clean else None

    # --- cached chunks ----------------------------------------------------------

    def get(self, index: Index) -> Chunk | None:
        """A chunk that is decoded and fresh, else None. Does not block."""
        found = self._chunks.find(index, self.freshness.not_before)
        return None if found is None else found.chunk

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None:
        """Several chunks; None if one of them is not cached, or not fresh."""
        found = self._chunks.find_all(indices, self.freshness.not_before)
        return None if found is None else [each.chunk for each in found]

    def get_data(self, indices: Sequence[Index]) -> Sequence[memoryview] | None:
        """The bytes of several chunks in C order.

        Returns None if a chunk is kept in less memory than its bytes take. Raises NotCached.
        """
        found = self._chunks.find_all(indices, self.freshness.not_before)
        if found is None:
            raise NotCached
        data = [each.data for each in found if each.data is not None]
        return data if len(data) == len(found) else None

    # --- loads ------------------------------------------------------------------

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: Keep = Keep.IN_ORDER,
        ahead: bool = False,
    ) -> None:
        """Deliver chunks, loading those that are missing. Does not block.

        keep : whether and how chunks that are loaded for this request should stay in memory.
        ahead : no reader waits for the chunks yet.

        ``deliver`` gets each available chunk exactly once, any number of chunks per call. ``done``
        is called once at the end. Both may be called in any thread, and before this method returns.
        """
        self._loads.request(indices, deliver, done, keep=keep, ahead=ahead)

    def load_ahead(self, indices: Sequence[Index]) -> None:
        """Load those of the chunks that are not in memory, before a reader asks for them."""
        if missing := [index for index in indices if not self._loads.expects(index)]:
            self._loads.request(
                missing, lambda _: None, lambda _: None, keep=Keep.IN_ORDER, ahead=True
            )

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None:
        """See `Scanner.scan`."""
        self._scanner.scan(block, done, ahead=ahead)

    # --- invalidation -----------------------------------------------------------

    def stored_anew(
        self,
        states: Mapping[Index, Generation | None],
        replaced: Mapping[Index, Generation | None],
    ) -> None:
        """This mount has replaced stored objects.

        states : in which they are now.
        replaced : those in which they were read for that.
        """
        self.freshness.saw(replaced.items(), partial(self._loads.drop_stored, loading=True))
        for stored, generation in states.items():
            self.freshness.wrote(stored, generation)
        self.array.forget(states)
        self._loads.drop_stored(states.keys(), loading=True)

    def distrust(self) -> None:
        """Forget all data that were read: the array has been resized."""
        self.freshness.expire()
        self._loads.drop(None, loading=True)

    def check(self) -> bool:
        """Ask the store for changes, if a check is due. May block.

        Returns whether data that were handed out may be old: changes were found since the last
        call, or cannot be ruled out. Raises EncodingChanged.
        """
        if self.freshness.due():
            # Before the check, which is then still due for the next open.
            self._encoding.check_read()
        self.freshness.check(partial(self._loads.drop_stored, loading=True))
        before, self._reported_epoch = self._reported_epoch, self.freshness.epoch
        return before != self._reported_epoch
