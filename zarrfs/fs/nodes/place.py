"""One inode: a node, and a directory or file within it."""

from __future__ import annotations

from typing import NamedTuple

from zarrfs.fs.nodes.nodes import MountedArray, MountedNode


class Place(NamedTuple):
    """
    local : number of a directory or file within the node.
    """

    node: MountedNode
    inode: int
    local: int

    @property
    def inodes(self) -> range:
        """Those of all places in the same node."""
        first = self.inode - self.local
        return range(first, first + self.node.size)

    @property
    def path(self) -> str:
        """From the root of the mount."""
        node = self.node
        names = (name for name, number in node.names() if number == self.local)
        name = next(names, "")
        if isinstance(node, MountedArray) and (found := node.place(self.local)) is not None:
            name = "/".join([found.tree.name, *map(str, found.prefix)])
        return "/".join(part for part in (node.node.path, name) if part)

    def sibling(self, local: int) -> Place:
        """Another place in the same node."""
        return Place(self.node, self.inode - self.local + local, local)
