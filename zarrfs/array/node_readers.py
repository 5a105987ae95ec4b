"""How each version of Zarr stores the metadata of a node, in documents or consolidated."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

from zarrfs import bounds
from zarrfs.errors import MetadataError, StoreListingUnsupported, reason_of
from zarrfs.format.metadata.documents import (
    DOCUMENTS,
    V1_ARRAY,
    V1_ATTRIBUTES,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V2_CONSOLIDATED,
    V2_GROUP,
    V3_NODE,
    load_json,
)
from zarrfs.format.metadata.kept import kept
from zarrfs.format.metadata.members import Damage, noting
from zarrfs.format.metadata.node import GroupMetadata, NodeMetadata
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.store.base import Blob, Data, ObjectInfo, Store
from zarrfs.store.plain_directory import Entry

log = logging.getLogger(__name__)

LARGEST_DOCUMENT = bounds.LARGEST_DOCUMENT

# Documents of more bytes are parsed one at a time, because parsing takes many times as much memory.
_LARGE = 1 << 20
_LEAST_DOCUMENT, _LEAST_PARSED = 8 << 20, 64 << 20
# Directories in which nodes are looked for below a damaged document, and in an archive.
_MOST_ASKED = 64


class DocumentReader:
    """Reads and parses documents, within a part of the memory budget.

    memory : bytes of the whole budget, of which a document may take a part.
    seen : called with each document that is read, by its key.
    """

    def __init__(
        self, memory: int, seen: Callable[[str, ObjectInfo], None] = lambda key, info: None
    ) -> None:
        self._seen = seen
        self._largest = min(bounds.LARGEST_DOCUMENT, max(memory // 8, _LEAST_DOCUMENT))
        self._parsed = min(bounds.LARGEST_PARSED, max(memory // 4, _LEAST_PARSED))
        self._one_at_a_time = Lock()

    def get(self, store: Store, key: str) -> Blob | None:
        """As `Store.get`; raises StoreError for a document that is too large."""
        if (blob := store.get(key, limit=self._largest)) is not None:
            self._seen(key, blob.info)
        return blob

    def parse(self, data: Data, document: str) -> Any:
        """Parse a document. Raises MetadataError."""
        return load_json(bytes(data), document, self._parsed)

    def room_for(self, size: int) -> AbstractContextManager[object]:
        """A context in which to parse documents of ``size`` bytes in total."""
        return self._one_at_a_time if size > _LARGE else nullcontext()


class Node(NamedTuple):
    """An array or a group.

    path : below the store's root; empty for the root.
    metadata : None if it cannot be served.
    problem : why it cannot be served, or which of its documents are damaged and count as empty.
    documents : names of its stored metadata documents, beside its chunks.
    mtime_ns : of its metadata, if the store returns it.
    entry : the entry of a plain directory; None below any other source.
    """

    path: str
    metadata: NodeMetadata | None
    problem: str | None
    documents: tuple[str, ...]
    mtime_ns: int | None
    entry: Entry | None = None

    @property
    def own_document(self) -> str | None:
        """The key of the document that makes it a node, though maybe only a group above has it."""
        names = [name for name in self.documents if name != V2_ATTRIBUTES]
        return join(self.path, names[0]) if names else None


class _Found(NamedTuple):
    """The documents of one node.

    names : of all of them.
    get : returns the value of a document by its name, or None; raises MetadataError.
    has_below : whether there are nodes below it.
    """

    path: str
    names: tuple[str, ...]
    get: Callable[[str], Any]
    has_below: Callable[[], bool]


@dataclass(frozen=True, slots=True, eq=False)
class NodeReader:
    """Reads the nodes of one version of Zarr.

    beside : for each document that makes a directory a node, the others that the node may have.
    parse : makes the metadata of its documents.
    documents : all that `read` asks for.
    """

    beside: Mapping[str, Sequence[str]]
    parse: Callable[[_Found, Damage], NodeMetadata]
    documents: Sequence[str]

    @property
    def markers(self) -> Sequence[str]:
        """Documents of which a node has at least one."""
        return tuple(self.beside)

    def read(self, store: Store, path: str, documents: DocumentReader) -> Node | None:
        """The node that is stored at ``path``; None if there is none of this version."""
        for marker in self.beside:
            if (main := documents.get(store, join(path, marker))) is not None:
                break
        else:
            return None
        stored = {marker: main.data}
        for name in self.beside[marker]:
            if (blob := documents.get(store, join(path, name))) is not None:
                stored[name] = blob.data

        def get(name: str) -> Any:
            shown = join(path, name) if name == V3_NODE else name
            return documents.parse(stored[name], shown) if name in stored else None

        def has_below() -> bool:
            return has_nodes(store, path, READERS.values())

        size = sum(map(len, stored.values()))
        with documents.room_for(size):
            found = _Found(path, tuple(stored), get, has_below)
            return self._node(found, main.info.mtime_ns, size)

    def read_consolidated(self, path: str, documents: Any, size: int) -> Node | None:
        """The node whose parsed ``documents``, of ``size`` bytes, a group above has."""
        named = {V3_NODE: documents} if V3_NODE in self.beside else documents
        if not isinstance(named, Mapping) or named.keys().isdisjoint(self.beside):
            return None
        own = {name: value for name, value in named.items() if name != V2_CONSOLIDATED}
        return self._node(_Found(path, tuple(own), own.get, lambda: False), None, size)

    def consolidated_size(self, documents: Any, name: str) -> int:
        """Bytes of a document that a group above has, as zarr-python writes it."""
        document = documents if name == V3_NODE else documents[name]
        return len(json.dumps(document, indent=2))

    def _node(self, found: _Found, mtime_ns: int | None, size: int) -> Node:
        path, documents = found.path, found.names
        damage: Damage = []
        try:
            metadata = self.parse(found, damage)
        except MetadataError as error:
            return Node(path, None, str(error), documents, mtime_ns)
        except Exception as error:
            # An error of this program or of a package must not affect other nodes.
            log.exception("cannot read the metadata of %s", f"/{path}")
            problem = f"cannot be read: {reason_of(error)}"
            return Node(path, None, problem, documents, mtime_ns)
        metadata = metadata._replace(attributes=kept(metadata.attributes, size))
        return Node(path, metadata, "; ".join(damage) or None, documents, mtime_ns)


def _parse_v3(found: _Found, damage: Damage) -> NodeMetadata:
    """One ``zarr.json``.

    A damaged one of which it is not certain that it is an array's counts as that of a group, if
    there are nodes below it.
    """
    value = None
    try:
        value = found.get(V3_NODE)
        return parse_node(value, join(found.path, V3_NODE), damage)
    except MetadataError as error:
        is_array = isinstance(value, Mapping) and value.get("node_type") == "array"
        if is_array or not found.has_below():
            raise
        damage.append(str(error))
        return GroupMetadata(3, {}, None)


def _parse_v2(found: _Found, damage: Damage) -> NodeMetadata:
    """``.zarray`` or ``.zgroup``, with ``.zattrs``, and ``.zmetadata`` for a whole group."""
    # Nodes of older versions are rare, so their readers are imported when there is one.
    from zarrfs.format.metadata.older.v2 import (  # noqa: PLC0415
        read_array_v2,
        read_consolidated_v2,
        read_group_v2,
    )

    attributes = children = None
    with noting(damage):
        attributes = found.get(V2_ATTRIBUTES)
    if V2_ARRAY in found.names:
        return read_array_v2(found.get(V2_ARRAY), attributes, damage)
    with noting(damage):
        if V2_CONSOLIDATED in found.names:
            children = read_consolidated_v2(found.get(V2_CONSOLIDATED))
    group: Any = {"zarr_format": 2}
    with noting(damage):
        group = found.get(V2_GROUP)
    return read_group_v2(group, attributes, children, damage)


def _parse_v1(found: _Found, damage: Damage) -> NodeMetadata:
    """``meta`` and ``attrs``. Zarr 1 has no groups: directories above such an array have none."""
    from zarrfs.format.metadata.older.v1 import read_array_v1  # noqa: PLC0415

    attributes = None
    with noting(damage):
        attributes = found.get(V1_ATTRIBUTES)
    return read_array_v1(found.get(V1_ARRAY), attributes, damage)


READERS: Mapping[int, NodeReader] = {
    3: NodeReader({V3_NODE: ()}, _parse_v3, DOCUMENTS[3]),
    2: NodeReader(
        {V2_ARRAY: (V2_ATTRIBUTES,), V2_GROUP: (V2_ATTRIBUTES, V2_CONSOLIDATED)},
        _parse_v2,
        DOCUMENTS[2],
    ),
    1: NodeReader({V1_ARRAY: (V1_ATTRIBUTES,)}, _parse_v1, DOCUMENTS[1]),
}
"""By version, newest first: if a directory has documents of several, the first is served."""


def readers_of(zarr_format: int | None) -> Sequence[NodeReader]:
    """That of one version; None: of all."""
    return tuple(READERS.values()) if zarr_format is None else (READERS[zarr_format],)


def join(path: str, name: str) -> str:
    """A key below a node's path."""
    return f"{path}/{name}" if path else name


def has_documents(store: Store, path: str, readers: Collection[NodeReader]) -> bool:
    """Whether there is a document at ``path`` that makes it a node of one of ``readers``."""
    markers = [marker for reader in readers for marker in reader.markers]
    return any(store.info(join(path, marker)) is not None for marker in markers)


def has_nodes(store: Store, path: str, readers: Collection[NodeReader]) -> bool:
    """Whether a directory next below ``path`` is a node; only the first ones are asked about."""
    try:
        names = (name[:-1] for name in store.list_dir(path) if name.endswith("/"))
        below = (join(path, name) for name in islice(names, _MOST_ASKED))
        return any(has_documents(store, one, readers) for one in below)
    except StoreListingUnsupported:
        return False
