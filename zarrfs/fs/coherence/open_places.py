"""Which files are open, by node: there may be 100 000 of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, KeysView, Sequence
from contextlib import contextmanager

from zarrfs.fs.nodes.nodes import MountedArray, MountedNode
from zarrfs.fs.nodes.place import Place


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
            places = self._by_node[node]
            places[place] -= 1
            if not places[place]:
                del places[place]
            if not places:
                del self._by_node[node]
        if writable:
            self._writable[place.inode] -= 1
            if not self._writable[place.inode]:
                del self._writable[place.inode]

    @contextmanager
    def reading(self, place: Place) -> Iterator[None]:
        """A read of a file is in progress."""
        self._reads[place.inode] += 1
        try:
            yield
        finally:
            self._reads[place.inode] -= 1
            if not self._reads[place.inode]:
                del self._reads[place.inode]

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
