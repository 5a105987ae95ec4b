"""The nodes of a source as they are read: from its root down, and from inside files in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import Node
from zarrfs.errors import EntryNotFound, NodeNotFound
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.plain_directory import PlainDirectory


@dataclass(slots=True, eq=False, repr=False)
class SourceNodes:
    """Methods block.

    plain : the source, where that is a directory of data of any kind.
    url : of the source, for messages.
    path : of the node that the mount shows.
    attributes_above : of the groups above that node, by path, as they were when it was read.
    """

    hierarchy: Hierarchy
    plain: PlainDirectory | None
    url: str
    path: str
    attributes_above: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Files of a plain directory that programs have looked into.
    _entered: set[str] = field(default_factory=set)

    def root(self) -> Node:
        """The node that the mount shows, read after the groups above it.

        These may say what lies below them. Raises NodeNotFound where there is no such node.
        """
        *above, node = self.hierarchy.reach_down(self.path)
        self.attributes_above = {
            one.path: one.metadata.attributes for one in above if one.metadata is not None
        }
        form = "directory" if node.entry is None else node.entry.form
        if form == "store" and (inside := self.enter(self.path)) is not None:
            return inside
        # The directories of chunks are no groups.
        in_array = any(isinstance(one.metadata, ArrayMetadata) for one in above)
        if form != "directory" or in_array:
            raise NodeNotFound(f"{self.url}: no Zarr array or group at {self.path}")
        return node

    def enter(self, path: str) -> Node | None:
        """The node in a file of a plain directory; this call opens the file. None: no such file."""
        node = self.hierarchy.inside(path)
        if node is not None:
            self._entered.add(path)
        return node

    def read(self, path: str) -> Node | None:
        """The node at ``path`` anew, from inside a file that is open."""
        inside = path in self._entered
        return self.hierarchy.inside(path) if inside else self.hierarchy.node(path)

    def present_mode(self, path: str) -> int | None:
        """The present permissions of an entry of a plain directory; None elsewhere.

        Raises EntryNotFound where it is not there any more, StoreError.
        """
        if self.plain is None:
            return None
        if (entry := self.plain.entry(path)) is None:
            raise EntryNotFound(path)
        return entry.mode
