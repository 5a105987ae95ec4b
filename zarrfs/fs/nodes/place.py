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

    def sibling(self, local: int) -> Place:
        """Another place in the same node."""
        return Place(self.node, self.base, local)
