"""Whole chunks for the kernel's cache, where programs read small parts of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Semaphore

from zarrfs.errors import ChunkError
from zarrfs.fs.coherence.kernel_pages import KernelPages
from zarrfs.fs.nodes.nodes import MountedArray
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import Data, View

# Bytes of a request that is not part of a scan: the kernel then reads ahead.
_SMALL = 16 << 10
# Bytes of a chunk that is given to the kernel for the sake of a small read.
_LARGEST = 4 << 20
# Reads of parts of a chunk after which all of it is given to the kernel, a power of two. Giving a
# chunk takes as long as a few reads from memory. A program that reads each chunk once would pay for
# that without any gain.
_TOUCHES = 2
# Chunks and regions whose reads are counted.
_MOST_COUNTED = 1 << 16
# Bytes of a file that are loaded together where one part of them after the other is asked for.
_REGION = 1 << 20
# Loading a region costs as much as decoding that many of its chunks one by one, and one more for
# each `_TOGETHER` chunks that it has.
_REGION_COST = 3
_TOGETHER = 5
# Regions that are loaded at once without anybody waiting for them.
_REGIONS_AHEAD = 2


class PushedChunks:
    """Gives the kernel each chunk that is read so often in small parts that it should have all.

    Chunks that programs read again and again are missing in the kernel's cache. Loop only.
    """

    def __init__(self, pages: KernelPages) -> None:
        self._pages = pages
        self._touches: dict[tuple[int, int], int] = {}
        # For each region of an inode, how often a part of it had to be decoded.
        self._misses: dict[tuple[int, int], int] = {}
        self._loading = Semaphore(_REGIONS_AHEAD)

    def note_read(self, place: Place, view: View, offset: int, size: int, *, missed: bool) -> None:
        """Part of a file was read: give the kernel its chunk, if others will read there too.

        missed : whether the part had to be decoded, which costs more than to give the chunk.
        """
        if size > _SMALL or offset >= view.size:
            return
        node, span = place.node, view.chunk_range_at(offset)
        if span is None or not isinstance(node, MountedArray) or span[1] - span[0] > _LARGEST:
            return
        start, stop = span
        inode = place.inode
        if self._read_enough(inode, start, missed=missed):
            unchanged = _unchanged(node)
            data = view.peek(start, stop)
            if data is not None:
                self._pages.kernel.store(inode, start, data, unchanged)
        region = offset // _REGION
        if missed and self._missed_enough(inode, region, stop - start):
            self._load_region(view, node, inode, region)

    def _read_enough(self, inode: int, start: int, *, missed: bool) -> bool:
        """A part of the chunk from byte ``start`` was read. Whether it should be given whole."""
        if len(self._touches) >= _MOST_COUNTED:
            self._touches.clear()
        touches = self._touches.get((inode, start), 0) + 1
        self._touches[inode, start] = touches
        # Again after ever more reads, in case the kernel had no room to keep it.
        return touches >= _TOUCHES and (missed or touches.bit_count() == 1)

    def _missed_enough(self, inode: int, region: int, chunk: int) -> bool:
        """A chunk of ``chunk`` bytes there was decoded. Whether the others should be, too.

        They should as soon as decoding one by one has cost as much as decoding all of them costs.

        region : number of a range of `_REGION` bytes. The answer is yes once for each.
        """
        if len(self._misses) >= _MOST_COUNTED:
            self._misses.clear()
        misses = self._misses.get((inode, region), 0) + 1
        self._misses[inode, region] = misses
        due = _REGION_COST + -(-_REGION // (_TOGETHER * chunk))
        return misses == due and misses * chunk < _REGION

    def _load_region(self, view: View, node: MountedArray, inode: int, region: int) -> None:
        """Have chunks that lie side by side decoded together, and give them to the kernel.

        All of them take one hop to a loader and one push, and no reader waits. Where requests cost
        money, nothing is read unasked.
        """
        kernel = self._pages.kernel
        if not node.array.array.store.cheap_stat or not self._loading.acquire(blocking=False):
            return
        start = region * _REGION
        unchanged = _unchanged(node)

        def give(data: Data | ChunkError) -> None:
            self._loading.release()
            if not isinstance(data, ChunkError):
                kernel.store(inode, start, data, unchanged)

        try:
            view.read(start, _REGION, give)
        except BaseException:
            self._loading.release()
            raise


def _unchanged(node: MountedArray) -> Callable[[], bool]:
    """Tells later whether bytes of now are still those that a program should get."""
    since = node.array.state, node.array.freshness.checks
    # The node has to stay while its pages are on the way.
    return lambda: (node.array.state, node.array.freshness.checks) == since
