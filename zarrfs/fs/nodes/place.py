"""One inode: a node, and a directory or file within it."""

from __future__ import annotations

from typing import NamedTuple

from zarrfs.fs.nodes.nodes import MountedNode


class Place(NamedTuple):
    """
    base : the first inode of the node.
    local : number of a directory or file within the node.
    """

    node: MountedNode
    base: int
    local: int

    @property
    def inode(self) -> int:
        return self.base + self.local

    @property
    def inodes(self) -> range:
        """Those of all places in the same node."""
        return range(self.base, self.base + self.node.size)

    def sibling(self, local: int) -> Place:
        """Another place in the same node."""
        return Place(self.node, self.base, local)
