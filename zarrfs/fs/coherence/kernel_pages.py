"""The pages of files in the kernel's cache, and the state of the data that they show."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from zarrfs.fs.nodes.nodes import MountedArray, MountedNode
from zarrfs.fs.nodes.place import Place
from zarrfs.views.view import Data

# Stands among writers for one other than those that have pages.
_NO_INODE = 0
# Inodes of which it is remembered how current the kernel's pages are.
_MOST_EPOCHS = 1 << 16


Epochs = tuple[int, list[tuple[int, int]]]
"""The version of a file's header, and for each of its arrays the epoch, and how many changes from
elsewhere that takes in."""


class KernelCache(Protocol):
    """The kernel's cache of the mount."""

    def drop(self, inode: int) -> None:
        """Have the kernel forget the pages of an inode, soon. Never blocks."""
        ...

    def store(self, inode: int, offset: int, data: Data, current: Callable[[], bool]) -> None:
        """Give the kernel pages, soon, if they are ``current`` then. Never blocks."""
        ...

    def dropping(self, inode: int) -> bool:
        """Whether the kernel is asked to forget the pages of an inode, and has not done so yet."""
        ...

    async def settled(self, inodes: Container[int] | None = None) -> None:
        """Returns when the kernel has forgotten what it was asked to of ``inodes``; None: of all.

        It may have to wait for pages that are being read, and to hand over changed ones.
        """
        ...


class NoKernelCache:
    """Stands in where there is no kernel."""

    def drop(self, inode: int) -> None:
        pass

    def store(self, inode: int, offset: int, data: Data, current: Callable[[], bool]) -> None:
        pass

    def dropping(self, inode: int) -> bool:
        return False

    async def settled(self, inodes: Container[int] | None = None) -> None:
        pass


class KernelPages:
    """For each inode, of which epoch of the array's data its pages are. Loop only."""

    def __init__(self) -> None:
        self.kernel: KernelCache = NoKernelCache()
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

    def unknown(self, inodes: Iterable[int]) -> None:
        """Nobody knows the present state of these files: the kernel has to ask."""
        for inode in inodes:
            self.drop(inode)

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

    def removed(self, inode: int, array: MountedArray) -> None:
        """A file was removed, so what it holds now is nothing that the kernel wrote."""
        self.written(inode, [array])
        self.drop(inode)

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
