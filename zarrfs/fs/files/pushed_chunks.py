"""Whole chunks for the kernel's cache, where programs read small parts of them."""

from __future__ import annotations

from collections.abc import Callable

from zarrfs.fs.coherence.kernel_pages import KernelPages
from zarrfs.fs.nodes.nodes import MountedArray
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import View

# Bytes of a request that is not part of a scan: the kernel then reads ahead.
_SMALL = 16 << 10
# Bytes of a chunk that is given to the kernel for the sake of a small read.
_LARGEST = 4 << 20
# Reads of parts of a chunk after which all of it is given to the kernel, a power of two. Giving a
# chunk takes as long as a few reads from memory. A program that reads each chunk once would pay for
# that without any gain.
_TOUCHES = 2
# Chunks whose reads are counted.
_MOST_COUNTED = 1 << 16


class PushedChunks:
    """Gives the kernel each chunk that is read so often in small parts that it should have all.

    Chunks that programs read again and again are missing in the kernel's cache. Loop only.
    """

    def __init__(self, pages: KernelPages) -> None:
        self._pages = pages
        self._touches: dict[tuple[int, int], int] = {}

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

    def _read_enough(self, inode: int, start: int, *, missed: bool) -> bool:
        """A part of the chunk from byte ``start`` was read. Whether it should be given whole."""
        if len(self._touches) >= _MOST_COUNTED:
            self._touches.clear()
        touches = self._touches.get((inode, start), 0) + 1
        self._touches[inode, start] = touches
        # Again after ever more reads, in case the kernel had no room to keep it.
        return touches >= _TOUCHES and (missed or touches.bit_count() == 1)


def _unchanged(node: MountedArray) -> Callable[[], bool]:
    """Tells later whether bytes of now are still those that a program should get."""
    since = node.array.state, node.array.freshness.checks
    # The node has to stay while its pages are on the way.
    return lambda: (node.array.state, node.array.freshness.checks) == since
