"""The nodes in memory, and which of them are dropped when there are too many.

A node is dropped when it is not in use: no open file, no request and no other node refers to it, it
has no changes that are not stored, and no node below it is in memory. `MountedNode.leave` says what
is left of it. It keeps its inodes as long as the kernel knows them, so it can be made again for a
request about one of them.

How it is certain that a node is not in use: each request and open file that may write to a node, or
shows its bytes, refers to the node itself, on the event loop, for as long as it runs. `trim` runs
on the event loop, with the lock held, so that no thread can find the node meanwhile. It removes the
node from the table, and then looks whether the object has ceased to exist. If it still exists, it
is in use, and is put back. So there are never two objects in use for one node, and no part of the
program has to say when it begins or ends to use one. A Python that does not free objects at once
would drop none.
"""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from zarrfs.errors import EntryNotFound
from zarrfs.fs.nodes.inodes import InodeSpace
from zarrfs.fs.nodes.nodes import MountedArray, MountedNode, Remains
from zarrfs.fs.nodes.place import Place
from zarrfs.locks import KeyedLocks

# Nodes that `trim` drops at once, and nodes in use that it meets before it gives up: it runs on the
# event loop.
_MOST_DROPPED = 64
_MOST_IN_USE = 8


class LiveNodes:
    """Nodes by path, and their inodes. Thread-safe.

    root : the path of the node that is the mount's root.
    most : bytes that they may take, as `MountedNode.nbytes` says. Nodes in use may take more.
    dropped : called with the path of a node that is dropped, before any thread can make it again.
    unknown : called with each inode of such a node of which the kernel may know the attributes, and
        nobody knows the present ones: the kernel has to ask.

    Shared state, under ``_lock``, which is held when the functions above are called: ``_nodes``, in
    order of use; ``nbytes``, what they take; ``_below``, by path the number of nodes directly
    below; ``_pinned``, the paths of nodes that stay; ``_changed``, by path when the data of a
    dropped array were last known to change, for the times that programs see.
    """

    def __init__(self, root: str, most: int, dropped: Callable[[str], None]) -> None:
        self.most = most
        self.nbytes = 0
        self.unknown: Callable[[int], None] = lambda _: None
        self._dropped = dropped
        self._inodes = InodeSpace(root)
        self._nodes: OrderedDict[str, MountedNode] = OrderedDict()
        self._below: Counter[str] = Counter()
        self._pinned = {root}
        self._making = KeyedLocks()
        self._changed: dict[str, int] = {}
        self._lock = Lock()

    def get(self, path: str) -> Place | None:
        """The directory of a node, if the node is in memory; it is used now."""
        with self._lock:
            return self._place(path, 0)

    def peek(self, path: str) -> MountedNode | None:
        """A node, if it is in memory; this is no use of it."""
        with self._lock:
            return self._nodes.get(path)

    def find(self, inode: int) -> tuple[str, int, Place | None]:
        """Path and number within a node of an inode, and its place if the node is in memory.

        Raises EntryNotFound for an inode that stands for nothing.
        """
        with self._lock:
            if (found := self._inodes.find(inode)) is None:
                raise EntryNotFound(f"inode {inode}")
            path, local = found
            return path, local, self._place(path, local)

    def _place(self, path: str, local: int) -> Place | None:
        if (node := self._nodes.get(path)) is None:
            return None
        self._nodes.move_to_end(path)
        return Place(node, self._inodes.base(path) + local, local)

    def all(self) -> list[Place]:
        """The directories of all nodes."""
        with self._lock:
            return [Place(node, self._inodes.base(path), 0) for path, node in self._nodes.items()]

    @property
    def known(self) -> int:
        """How many nodes have inodes: those in memory, and those that the kernel knows."""
        return len(self._inodes)

    @contextmanager
    def making(self, path: str) -> Iterator[None]:
        """Inside, no other thread makes the node at ``path``. Blocks."""
        try:
            with self._making.held(path):
                yield
        finally:
            # This does nothing while another thread makes the node, or waits to make it.
            with self._lock:
                self._release(path)

    def put(self, node: MountedNode) -> Place:
        """Add a node, or have it take the place of the present one; inside `making`.

        Raises EntryNotFound if there are no inodes left.
        """
        path = node.node.path
        with self._lock:
            base = self._inodes.claim(path, node.size)
            if isinstance(node, MountedArray):
                if base is None or not self._inodes.grow(path, node.size):
                    node.drop_trees("chunks/ and shards/ are not shown: there are too many chunks")
                    base = self._inodes.claim(path, node.size)
                node.array.freshness.changed_ns = self._changed.pop(path, 0)
            if base is None:
                raise EntryNotFound(f"{path}: no inode is left")
            if (old := self._nodes.get(path)) is not None:
                self.nbytes -= old.nbytes
            elif path:
                self._below[_above(path)] += 1
            self.nbytes += node.nbytes
            self._nodes[path] = node
            self._nodes.move_to_end(path)
            return Place(node, base, 0)

    def pin(self, path: str) -> None:
        """Never drop the node at ``path``."""
        with self._lock:
            self._pinned.add(path)

    def give(self, inode: int) -> None:
        """The kernel is given an inode: once more, it may ask for it until it has forgotten it."""
        with self._lock:
            self._inodes.give(inode)

    def take_back(self, inode: int, times: int) -> None:
        """The kernel has forgotten an inode that it was given so often."""
        with self._lock:
            if (path := self._inodes.take_back(inode, times)) is not None:
                self._release(path)

    def _release(self, path: str) -> None:
        """Let go of the inodes of a node, if neither the kernel nor a thread needs them."""
        if path not in self._nodes and path not in self._making:
            self._inodes.release(path)

    def listed(self, path: str) -> int:
        """The first inode of a node, which need not be in memory; the kernel is given it."""
        with self._lock:
            return self._inodes.listed(path)

    def trim(self) -> list[Remains]:
        """Drop the least recently used nodes while all take too much; returns what they leave.

        Event loop only. Does not block.
        """
        left: list[Remains] = []
        in_use = 0
        while self.nbytes > self.most and in_use < _MOST_IN_USE and len(left) < _MOST_DROPPED:
            with self._lock:
                path = next(iter(self._nodes))
                if (found := self._drop(path)) is not None:
                    left.append(found)
                    continue
                in_use += 1
                self._nodes.move_to_end(path)
        return left

    def _drop(self, path: str) -> Remains | None:
        """Drop a node; None if it is in use. With the lock held."""
        node = self._nodes[path]
        if path in self._pinned or (left := node.leave()) is None or self._below[path]:
            return None
        size = node.nbytes
        watch = weakref.ref(node)
        del self._nodes[path], node
        if (used := watch()) is not None:
            self._nodes[path] = used
            return None
        self.nbytes -= size
        del self._below[path]
        self._below[_above(path)] -= 1
        if left.array is not None and (changed := left.array.freshness.changed_ns):
            self._changed[path] = changed
        self._dropped(path)
        if self._inodes.given(path):
            base = self._inodes.base(path)
            for number in left.numbers:
                self.unknown(base + number)
        self._release(path)
        return left


def _above(path: str) -> str:
    return path.rpartition("/")[0]
