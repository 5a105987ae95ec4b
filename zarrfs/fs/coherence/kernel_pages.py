"""The pages of files in the kernel's cache: what is open, how current its pages are, what to give.

There may be 100 000 open files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, KeysView, Sequence
from contextlib import contextmanager
from typing import TypeVar
from weakref import WeakKeyDictionary

from zarrfs.fs.nodes.nodes import MountedArray, MountedNode
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import Data, View

# Stands among writers for one other than those that have pages.
_NO_INODE = 0
# Inodes of which it is remembered how current the kernel's pages are.
_MOST_EPOCHS = 1 << 16
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


T = TypeVar("T")
Epochs = tuple[int, list[tuple[int, int]]]
"""The version of a file's header, and for each of its arrays the epoch, and how many changes from
elsewhere that takes in."""


def count_one_less(counter: Counter[T], key: T) -> None:
    """Take one from the count of ``key``, which is forgotten at zero."""
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


class KernelCache:
    """The kernel's cache of the mount; this one stands in where there is no kernel."""

    def drop(self, inode: int) -> None:
        """Have the kernel forget the pages of an inode, soon. Never blocks."""

    def store(self, inode: int, offset: int, data: Data, current: Callable[[], bool]) -> None:
        """Give the kernel pages, soon, if they are ``current`` then. Never blocks."""

    async def settled(self, inodes: Container[int] | None = None) -> None:
        """Returns when the kernel has forgotten what it was asked to of ``inodes``; None: of all.

        It may have to wait for pages that are being read, and to hand over changed ones.
        """


class OpenPlaces:
    """The places of all handles. No call takes longer for more handles. Loop only.

    A file is of its own node, and of each array whose elements it shows.
    """

    def __init__(self) -> None:
        self._by_node: dict[MountedNode, Counter[Place]] = {}
        self._writable: Counter[int] = Counter()
        self._reads: Counter[int] = Counter()

    def opened(self, place: Place, arrays: Sequence[MountedArray], *, writable: bool) -> None:
        """One more handle of a file with elements of ``arrays``."""
        for node in {place.node, *arrays}:
            self._by_node.setdefault(node, Counter())[place] += 1
        if writable:
            self._writable[place.inode] += 1

    def closed(self, place: Place, arrays: Sequence[MountedArray], *, writable: bool) -> None:
        """One handle less, which was `opened` with the same arguments."""
        for node in {place.node, *arrays}:
            count_one_less(self._by_node[node], place)
            if not self._by_node[node]:
                del self._by_node[node]
        if writable:
            count_one_less(self._writable, place.inode)

    @contextmanager
    def reading(self, place: Place) -> Iterator[None]:
        """A read of a file is in progress."""
        self._reads[place.inode] += 1
        try:
            yield
        finally:
            count_one_less(self._reads, place.inode)

    @property
    def read_inodes(self) -> KeysView[int]:
        """Inodes of which reads are in progress."""
        return self._reads.keys()

    def of(self, node: MountedNode) -> Iterable[Place]:
        """Each open place of a node, once."""
        return self._by_node.get(node, ())

    @property
    def writable_inodes(self) -> KeysView[int]:
        """Inodes of what is open for writing."""
        return self._writable.keys()


class KernelPages:
    """For each inode, of which epoch of the array's data its pages are. Loop only."""

    def __init__(self) -> None:
        self.kernel = KernelCache()
        self._epochs: dict[int, Epochs] = {}
        # The same for inodes whose pages the kernel drops when it gets the answer to an open.
        self._opening: dict[int, Epochs] = {}
        # Inodes written through whose changes other files' pages may not show, by array.
        self._writers: WeakKeyDictionary[MountedNode, set[int]] = WeakKeyDictionary()

    def opened(self, inode: int, arrays: Sequence[MountedArray], version: int = 0) -> bool:
        """A file is opened: whether the pages that the kernel has of it are still good.

        arrays : those whose elements it has.
        version : of its header.

        They are not if other files were written to and the pages have not been dropped since. The
        kernel then drops them when it gets the answer, which may be after the answer to another
        open. So no open keeps pages before `used` is called.
        """
        epoch = epochs_of(arrays, version)
        if self._epochs.get(inode) == epoch and all(
            self._writers.get(array, set()) <= {inode} for array in arrays
        ):
            return True
        for epochs in (self._epochs, self._opening):
            if len(epochs) >= _MOST_EPOCHS:
                epochs.clear()
        self._epochs.pop(inode, None)
        self._opening[inode] = epoch
        return False

    def used(self, inode: int, epoch: Epochs) -> None:
        """A program uses a handle, so the kernel has dropped the pages that it had at the open.

        epoch : at the open.
        """
        if self._opening.get(inode) == epoch:
            self._epochs[inode] = self._opening.pop(inode)

    def forget(self, inodes: Iterable[int]) -> None:
        """Nothing that the kernel has can be relied on; ``inodes`` beside those with pages."""
        for inode in {*inodes, *self._epochs}:
            self.kernel.drop(inode)
        self._epochs.clear()
        self._opening.clear()

    def written(self, inode: int, arrays: Iterable[MountedArray], *, lossy: bool = False) -> None:
        """A file of ``arrays`` was written to. The kernel keeps its pages of it current by itself.

        lossy : some of what was written is not kept, so that these pages are not current.
        """
        for array in arrays:
            writers = self._writers.setdefault(array, set())
            writers.add(inode)
            if lossy:
                writers.add(_NO_INODE)

    def outdated(self, inode: int) -> None:
        """The next open of a file must not use the kernel's present pages."""
        self._epochs.pop(inode, None)
        self._opening.pop(inode, None)

    def drop(self, inode: int) -> None:
        """The kernel's pages of a file, and its size, are out of date."""
        self.outdated(inode)
        self.kernel.drop(inode)

    def stored(self, node: MountedArray, open_places: Iterable[Place]) -> set[int]:
        """Changes of an array are stored: forget pages that do not show them.

        open_places : those of the array.

        A file that alone was written to keeps its pages. Returns the inodes of the files that
        were written to.
        """
        writers = self._writers.pop(node, set())
        now = _epoch(node)
        if len(writers) == 1:
            (inode,) = writers
            version, known = self._epochs.get(inode, (0, []))
            if len(known) == 1 and known[0][1] == now[1]:
                self._epochs[inode] = version, [now]
        for other in open_places if writers else ():
            if writers != {other.inode}:
                self.kernel.drop(other.inode)
        return writers

    def closed(self, inode: int, array: MountedArray, open_places: Iterable[Place]) -> None:
        """A handle is closed: later writes of a mapping through it report to no program."""
        if inode in self._writers.get(array, ()):
            self.stored(array, open_places)


def epochs_of(arrays: Sequence[MountedArray], version: int) -> Epochs:
    """The present state of the data of a file with these arrays and this version of its header."""
    return version, [_epoch(array) for array in arrays]


def _epoch(node: MountedArray) -> tuple[int, int]:
    freshness = node.array.freshness
    return freshness.epoch, freshness.foreign


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
