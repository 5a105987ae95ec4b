"""The groups and arrays of a store, and their metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from zarrfs import bounds
from zarrfs.array.listed_nodes import ListedNodes
from zarrfs.array.node_readers import (
    DocumentReader,
    Node,
    NodeReader,
    has_documents,
    has_nodes,
    join,
    readers_of,
)
from zarrfs.errors import (
    NodeNotFound,
    StoreConflict,
    StoreError,
    StoreListingUnsupported,
    StoreTimeout,
    StoreUnavailable,
    UsageError,
)
from zarrfs.format.metadata.kept import Consolidated, UseConsolidated
from zarrfs.format.metadata.node import GroupMetadata, kept_bytes
from zarrfs.memory.default_memory import default_memory
from zarrfs.store.base import ObjectInfo, Store
from zarrfs.store.plain_directory import PlainDirectory

# Smaller metadata are not counted, in bytes.
_SMALL = 4 << 10
# The same as for other checks of a remote store.
_RECHECK = 30.0
# Names that Zarr reserves, and names that are hidden by convention.
_NOT_NODES = ("__", ".")
_ARCHIVES = ("zip", "tar")
_NOT_CONSOLIDATED = "has no consolidated metadata, and no others are to be used"


class _Consolidated(NamedTuple):
    """Consolidated metadata of a group: all documents below it, by relative path."""

    base: str
    reader: NodeReader
    documents: Consolidated

    def relative(self, path: str) -> str:
        return path.removeprefix(self.base).lstrip("/")


class Hierarchy:
    """The nodes of a store. Methods block. Thread-safe.

    zarr_format : the only version to look for; None: the newest version that is found.
    memory : bytes of the whole budget, of which documents may take a part; None: `default_memory`.
    recheck : seconds for which a listing of a remote store is trusted.
    consolidated : whether consolidated metadata decide what is below a group that has them (auto),
        never do, or are the only metadata below any group.
    seen : called with each document that is read, by its key.
    """

    def __init__(
        self,
        store: Store,
        zarr_format: int | None = None,
        memory: int | None = None,
        recheck: float = _RECHECK,
        plain: PlainDirectory | None = None,
        consolidated: UseConsolidated = "auto",
        seen: Callable[[str, ObjectInfo], None] = lambda key, info: None,
    ) -> None:
        self._store = store
        self._use = consolidated
        self._plain = plain
        memory = memory or default_memory()
        self._documents = DocumentReader(memory, seen)
        # Bytes of the kept documents of each node that has many.
        self._kept: dict[str, int] = {}
        self._most_kept = memory // 4
        self._readers = readers_of(zarr_format)
        self._consolidated: dict[str, _Consolidated] = {}
        self._listed = ListedNodes(
            store, self._readers, self._documents, recheck, self._bare_directory
        )

    def forget(self) -> None:
        """Read consolidated metadata anew when groups are next opened."""
        self._consolidated.clear()
        self._listed.forget()

    def release(self, path: str) -> None:
        """Nobody uses the node at ``path``, nor any below it. Does not block."""
        self._kept.pop(path, None)
        self._consolidated.pop(path, None)

    def root(self) -> Node:
        """The source itself. Raises NodeNotFound if it is no Zarr array or group."""
        node = self.node("")
        if node is None:
            markers = ", ".join(marker for reader in self._readers for marker in reader.markers)
            raise NodeNotFound(f"{self._store.url}: no Zarr array or group here (no {markers})")
        return node

    def reach(self, path: str) -> Node:
        """The node at ``path``, a ``/``-separated path below the source, from the root down.

        Raises NodeNotFound if there is none, UsageError if ``path`` is no valid path.
        """
        return self.reach_down(path)[-1]

    def reach_down(self, path: str) -> list[Node]:
        """The nodes above ``path`` from the root down, and the node at ``path``; as `reach`."""
        names = [name for name in path.split("/") if name]
        if any(name in (".", "..") or "\0" in name for name in names):
            raise UsageError(f"{path!r} is not a valid path of a Zarr node")
        if not names:
            return [self.root()]
        node = self.node("")
        above = []
        at = ""
        for name in names:
            above.append(node)
            at = join(at, name)
            node = self.node(at)
        if node is None:
            raise NodeNotFound(f"{self._store.url}: no Zarr array or group at {at}")
        return [*(one for one in above if one is not None), node]

    def node(self, path: str) -> Node | None:
        """The node at ``path``; None if there is none.

        Below a group with consolidated metadata these decide, and the store is not asked. So groups
        must be opened from the root down.

        If the store does not return a document, the reason becomes the node's ``problem``. For the
        root it raises StoreError, and so does a store that cannot answer now.
        """
        entry = None if self._plain is None else self._plain.entry(path)
        if entry is not None and entry.form != "directory":
            # A file that is a store is opened when a program looks into it.
            metadata = GroupMetadata(0, {}, None) if entry.form == "store" else None
            return Node(path, metadata, None, (), entry.mtime_ns, entry)
        node = self._read(path)
        if entry is None:
            return node
        assert self._plain is not None
        if node is None:
            node = Node(path, GroupMetadata(0, {}, None), None, (), entry.mtime_ns)
        if not node.documents:
            node = node._replace(problem=node.problem or self._plain.left_out(path))
        return node._replace(entry=entry)

    def inside(self, path: str) -> Node | None:
        """The node in a file of a plain directory; this call opens the file."""
        if self._plain is None or (entry := self._plain.entry(path)) is None:
            return None
        try:
            self._plain.enter(path)
            node = self._read(path)
        except StoreError as error:
            node = Node(path, None, error.reason, (), entry.mtime_ns)
        if node is None:
            node = Node(path, None, "no Zarr array or group here", (), entry.mtime_ns)
        return node._replace(entry=entry._replace(form="directory"))

    def _read(self, path: str) -> Node | None:
        if path and (above := self._consolidated_above(path)) is not None:
            node = _consolidated_node(above, path)
            return None if node is None else self._charged(node)
        for reader in self._readers:
            try:
                node = reader.read(self._store, path, self._documents)
            except StoreError as error:
                if not path:
                    # Nothing beside the root could be served.
                    where = join(self._store.url, error.key)
                    raise type(error)(where, error.reason) from error
                if isinstance(error, StoreTimeout | StoreUnavailable | StoreConflict):
                    raise
                return Node(path, None, str(error), tuple(reader.markers), None)
            if node is None:
                continue
            node = self._charged(node)
            self._note(node, reader)
            metadata = node.metadata
            lacks = isinstance(metadata, GroupMetadata) and metadata.children is None
            if self._use == "only" and lacks:
                return node._replace(metadata=None, problem=_NOT_CONSOLIDATED)
            return node
        return self._bare_directory(path)

    def _charged(self, node: Node) -> Node:
        """The node, or one with a ``problem`` if its metadata would take too much memory.

        A node that is read again replaces the earlier one.
        """
        size = 0 if node.metadata is None else kept_bytes(node.metadata)
        self._kept.pop(node.path, None)
        if size < _SMALL:
            return node
        if size > (room := self._most_kept - sum(list(self._kept.values()))):
            problem = (
                f"its metadata take {size} bytes of memory, there is room for {max(room, 0)}: "
                "raise it with -o memory="
            )
            return Node(node.path, None, problem, node.documents, node.mtime_ns)
        self._kept[node.path] = size
        return node

    def is_kept(self, path: str) -> bool:
        """Whether consolidated metadata tell what is at ``path``, without a request."""
        return self._consolidated_above(path) is not None

    def listed(self, path: str) -> Node | None:
        """As `node`, but trusts a recent listing of a remote store by `children`."""
        if (found := self._listed.take(path)) is None:
            return self.node(path)
        node, reader = self._charged(found[0]), found[1]
        self._note(node, reader)
        return node

    def _note(self, node: Node, reader: NodeReader | None) -> None:
        """Remember consolidated metadata."""
        metadata = node.metadata
        if self._use == "never":
            return
        if isinstance(metadata, GroupMetadata) and metadata.children is not None:
            assert reader is not None
            self._consolidated[node.path] = _Consolidated(node.path, reader, metadata.children)

    def _bare_directory(self, path: str) -> Node | None:
        """A directory without metadata counts as a group if it contains any entries.

        The specification does not have such groups any more. Older stores, and stores written by
        hand, have them, and the nodes below them can be opened.
        """
        if path.rpartition("/")[2].startswith(_NOT_NODES):
            return None
        is_archive = self._store.url.partition("://")[0] in _ARCHIVES
        if not path and not (is_archive and has_nodes(self._store, path, self._readers)):
            return None
        try:
            if not any(name.endswith("/") for name in self._store.list_dir(path)):
                return None
        except StoreListingUnsupported:
            return None
        return Node(path, GroupMetadata(0, {}, None), None, (), None)

    def consolidated_size(self, key: str) -> int | None:
        """Bytes of a document, going by consolidated metadata; None if they do not have it.

        Its writer may have spaced it in another way.
        """
        path, _, name = key.rpartition("/")
        if (above := self._consolidated_above(path)) is None:
            return None
        relative = above.relative(path)
        if relative not in above.documents:
            return None
        return above.reader.consolidated_size(above.documents[relative], name)

    def children(self, path: str) -> list[str]:
        """Names of the nodes directly below the group ``path``, sorted.

        Raises StoreListingUnsupported if there are no consolidated metadata and the store cannot
        list.
        """
        above = self._consolidated.get(path) or self._consolidated_above(path)
        if above is not None:
            below = above.documents.names_below(above.relative(path))
            return sorted(filter(bounds.is_name, below))
        if self._is_plain(path):
            return sorted(
                filter(bounds.is_name, (n.rstrip("/") for n in self._store.list_dir(path)))
            )
        directories = (name[:-1] for name in self._store.list_dir(path) if name.endswith("/"))
        names = list(filter(bounds.is_name, directories))
        paths = [join(path, name) for name in names]
        if self._store.traits.near:
            exists = list(map(self._exists, paths))
        else:
            exists = self._listed.exist(paths)
        return sorted(name for name, there in zip(names, exists, strict=True) if there)

    def below(self, path: str, levels: float = math.inf) -> Iterator[tuple[int, Node]]:
        """All nodes below the group ``path``, with their depth; a node before those below it.

        levels : the greatest depth. Raises as `children`.
        """
        # No function that calls itself: a directory may be deeper than Python's limit.
        stack = [iter(self.children(path))]
        paths = [path]
        while stack:
            for name in stack[-1]:
                if (node := self.listed(join(paths[-1], name))) is None:
                    continue
                yield len(stack), node
                if isinstance(node.metadata, GroupMetadata) and len(stack) < levels:
                    stack.append(iter(self.children(node.path)))
                    paths.append(node.path)
                    break
            else:
                stack.pop()
                paths.pop()

    def _is_plain(self, path: str) -> bool:
        """Whether a directory is no Zarr node, so that all of its entries are shown."""
        if self._plain is None or (entry := self._plain.entry(path)) is None:
            return False
        return entry.form == "directory" and not has_documents(self._store, path, self._readers)

    def _exists(self, path: str) -> bool:
        try:
            if self._bare_directory(path) is not None:
                return True
            return has_documents(self._store, path, self._readers)
        except Exception:  # noqa: BLE001 - affects one child only
            # The listing has the child, and opening it returns the error.
            return True

    def _consolidated_above(self, path: str) -> _Consolidated | None:
        """The consolidated metadata of the nearest group above ``path`` that has any."""
        while path:
            path = path.rpartition("/")[0]
            if (found := self._consolidated.get(path)) is not None:
                return found
        return None


def _consolidated_node(above: _Consolidated, path: str) -> Node | None:
    relative = above.relative(path)
    if relative in above.documents:
        size = above.documents.size_of(relative)
        return above.reader.read_consolidated(path, above.documents[relative], size)
    if above.documents.has_below(relative):
        # A group without a document of its own, known only from its children.
        return Node(path, GroupMetadata(0, {}, None), None, (), None)
    return None
