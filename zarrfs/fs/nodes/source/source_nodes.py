"""The nodes of a source as they are read: from its root down, and from inside files in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import Node
from zarrfs.errors import EntryNotFound, NodeNotFound
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.plain_directory import PlainDirectory


class SourceNodes:
    """Methods block.

    plain : the source, where that is a directory of data of any kind.
    url : of the source, for messages.
    path : of the node that the mount shows.
    attributes_above : of the groups above that node, by path, as they were when it was read.
    """

    def __init__(
        self, hierarchy: Hierarchy, plain: PlainDirectory | None, url: str, path: str
    ) -> None:
        self._hierarchy = hierarchy
        self._plain = plain
        self._url = url
        self._path = path
        self.attributes_above: Mapping[str, Mapping[str, Any]] = {}
        # Files of a plain directory that programs have looked into.
        self._entered: set[str] = set()

    def root(self) -> Node:
        """The node that the mount shows, read after the groups above it.

        These may say what lies below them. Raises NodeNotFound where there is no such node.
        """
        *above, node = self._hierarchy.reach_down(self._path)
        self.attributes_above = {
            one.path: one.metadata.attributes for one in above if one.metadata is not None
        }
        form = "directory" if node.entry is None else node.entry.form
        if form == "store" and (inside := self.enter(self._path)) is not None:
            return inside
        # The directories of chunks are no groups.
        in_array = any(isinstance(one.metadata, ArrayMetadata) for one in above)
        if form != "directory" or in_array:
            raise NodeNotFound(f"{self._url}: no Zarr array or group at {self._path}")
        return node

    def enter(self, path: str) -> Node | None:
        """The node in a file of a plain directory; this call opens the file. None: no such file."""
        node = self._hierarchy.inside(path)
        if node is not None:
            self._entered.add(path)
        return node

    def read(self, path: str) -> Node | None:
        """The node at ``path`` anew, from inside a file that is open."""
        inside = path in self._entered
        return self._hierarchy.inside(path) if inside else self._hierarchy.node(path)

    def present_mode(self, path: str) -> int | None:
        """The present permissions of an entry of a plain directory; None elsewhere.

        Raises EntryNotFound where it is not there any more, StoreError.
        """
        if self._plain is None:
            return None
        if (entry := self._plain.entry(path)) is None:
            raise EntryNotFound(path)
        return entry.mode
