"""A cached array whose readers see at once what has been written to it.

A read looks for changes of a tile first, and then for chunks as `CachedArray` has them. The event
loop never waits here: if the lock of a tile is taken, or changes and stored elements must be
combined, a thread does the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zarrfs.array.array import Array
from zarrfs.array.block import Block
from zarrfs.cache.read.block_cache import BlockCache
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.cache.read.chunk_loads import Deliver, Delivery
from zarrfs.cache.read.flights import Done, Keep
from zarrfs.cache.read.part_reads import Wanted
from zarrfs.cache.write.dirty_objects import DirtyObjects
from zarrfs.cache.write.gathering import Gathering
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.tiles import Tiles
from zarrfs.errors import ChunkError
from zarrfs.format.chunk_grid import Index
from zarrfs.format.codec import Chunk
from zarrfs.jobs.executor import Processes


class OverlaidArray(CachedArray):
    """
    tiles : the units of change.
    writes : grows with every write, before the writer gets its answer.
    gathering : the first stop of sequential writes.
    """

    gathering: Gathering

    def __init__(
        self,
        cache: BlockCache,
        array: Array,
        recheck: float,
        processes: Processes | None = None,
    ) -> None:
        super().__init__(cache, array, recheck, processes)
        self.tiles = Tiles(array.layout)
        self.writes = 0
        self._dirty = DirtyObjects(self.tiles)

    @property
    def state(self) -> tuple[int, ...]:
        return (*super().state, self.writes)

    def get(self, index: Index) -> Chunk | None:
        if self.gathering.pending:
            return None
        tile, place = self.tiles.locate(index)
        changes = self._dirty.find(tile)
        return super().get(index) if changes is None else _now(changes, place)

    def get_all(self, indices: Sequence[Index]) -> Sequence[Chunk] | None:
        if self.clean:
            return super().get_all(indices)
        found = []
        for index in indices:
            if (chunk := self.get(index)) is None:
                return None
            found.append(chunk)
        return found

    def get_data(self, indices: Sequence[Index]) -> Sequence[memoryview] | None:
        return None if self._any_dirty(indices) else super().get_data(indices)

    def _any_dirty(self, indices: Iterable[Index]) -> bool:
        """Whether one of these chunks may be changing; then readers copy it as `get` returns it."""
        if self.gathering.pending:
            return True
        return bool(self._dirty) and self._dirty.any({self.tiles.locate(i).tile for i in indices})

    def request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: Keep = Keep.IN_ORDER,
        ahead: bool = False,
    ) -> None:
        if self.clean:
            super().request(indices, deliver, done, keep=keep, ahead=ahead)
            return
        slow = self.gathering.pending
        left = list(indices) if slow else []
        ready: list[tuple[Index, Chunk]] = []
        for index in () if slow else indices:
            tile, place = self.tiles.locate(index)
            changes = self._dirty.find(tile)
            if changes is not None and (chunk := _now(changes, place)) is not None:
                ready.append((index, chunk))
            else:
                left.append(index)
                slow |= changes is not None
        if ready:
            deliver(ready)
        if not slow:
            self._request(left, deliver, done, keep=keep, ahead=ahead)
            return

        def combine() -> None:
            self.gathering.scatter()
            self._request(left, deliver, done, keep=keep)

        # Scattering, and combining changes with stored elements, takes too long for the event loop.
        self.in_thread(combine, done, ahead=ahead)

    def request_parts(self, wanted: Wanted) -> None:
        if self.clean:
            super().request_parts(wanted)
        else:
            self.request(list(wanted.spans), wanted.deliver, wanted.done, keep=wanted.keep)

    def _request(
        self,
        indices: Sequence[Index],
        deliver: Deliver,
        done: Done,
        *,
        keep: Keep,
        ahead: bool = False,
    ) -> None:
        """Deliver chunks as they are stored, with their changes."""
        layout = self.array.layout
        stored_since = self._dirty.enter()
        outdated: list[Index] = []

        def overlay(delivery: Delivery) -> None:
            found: list[tuple[Index, Chunk]] = []
            for index, chunk in delivery:
                stored = layout.stored_index(index)
                tile, place = self.tiles.locate(index)
                changes = self._dirty.find(tile)
                if changes is not None:
                    with changes.lock:
                        # Elements stored meanwhile may be missing both in the loaded chunk and in
                        # the changes.
                        if changes.gone or stored in stored_since:
                            outdated.append(index)
                        else:
                            found.append((index, changes.merged(place, chunk)))
                elif stored in stored_since:
                    # The chunk may have been loaded before the changes were stored; now they are
                    # not dirty any more.
                    outdated.append(index)
                else:
                    found.append((index, chunk))
            if found:
                deliver(found)

        def over(error: ChunkError | None) -> None:
            self._dirty.leave(stored_since)
            if outdated and error is None:
                self.request(outdated, deliver, done, keep=keep, ahead=ahead)
            else:
                done(error)

        super().request(indices, overlay, over, keep=keep, ahead=ahead)

    def scan(self, block: Block, done: Done, *, ahead: bool) -> None:
        """As `CachedArray.scan`. Blocks: not for the event loop."""
        self.gathering.scatter()
        if not self._dirty:
            # Changes during the scan also change `state`.
            super().scan(block, done, ahead=ahead)
            return
        by_index = {piece.chunk: piece for piece in block.pieces()}

        def deliver(delivery: Delivery) -> None:
            for index, chunk in delivery:
                piece = by_index[index]
                piece.target[...] = chunk.view(block.carrier)[piece.source]

        self.request(list(by_index), deliver, done, keep=Keep.NO, ahead=ahead)


def _now(changes: TileChanges, place: Index) -> Chunk | None:
    """A chunk in memory, if the lock of its tile is free: the caller must not wait."""
    if not changes.lock.acquire(blocking=False):
        return None
    try:
        return None if changes.gone else changes.now(place)
    finally:
        changes.lock.release()
