"""How each version of Zarr stores the metadata of a node, in documents or consolidated."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

from zarrfs import bounds
from zarrfs.errors import MetadataError, StoreListingUnsupported, reason_of
from zarrfs.format.metadata.documents import (
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


class NodeReader:
    """Reads the nodes of one version of Zarr.

    markers : documents of which a node has at least one.
    documents : all documents that `read` asks for.
    """

    markers: Sequence[str]
    documents: Sequence[str]

    def read(self, store: Store, path: str, documents: DocumentReader) -> Node | None:
        """The node that is stored at ``path``; None if there is none of this version."""
        raise NotImplementedError

    def read_consolidated(self, path: str, documents: Any, size: int) -> Node | None:
        """The node whose parsed ``documents``, of ``size`` bytes, a group above has."""
        return None

    def consolidated_size(self, documents: Any, name: str) -> int:
        """Bytes of a document that a group above has, as zarr-python writes it."""
        document = documents if name == V3_NODE else documents[name]
        return len(json.dumps(document, indent=2))


class V3Reader(NodeReader):
    """One ``zarr.json``.

    A damaged one of which it is not certain that it is an array's counts as that of a group, if
    there are nodes below it.
    """

    markers = documents = (V3_NODE,)

    def read(self, store: Store, path: str, documents: DocumentReader) -> Node | None:
        key = join(path, V3_NODE)
        blob = documents.get(store, key)
        if blob is None:
            return None
        data, mtime_ns = blob.data, blob.info.mtime_ns

        def parse(damage: Damage) -> NodeMetadata:
            value = None
            try:
                value = documents.parse(data, key)
                return parse_node(value, key, damage)
            except MetadataError as error:
                is_array = isinstance(value, Mapping) and value.get("node_type") == "array"
                if is_array or not has_nodes(store, path, READERS.values()):
                    raise
                damage.append(str(error))
                return GroupMetadata(3, {}, None)

        with documents.room_for(len(data)):
            return _node(path, parse, (V3_NODE,), mtime_ns, len(data))

    def read_consolidated(self, path: str, documents: Any, size: int) -> Node | None:
        key = join(path, V3_NODE)
        return _node(
            path, lambda damage: parse_node(documents, key, damage), (V3_NODE,), None, size
        )


class V2Reader(NodeReader):
    """``.zarray`` or ``.zgroup``, with ``.zattrs``, and ``.zmetadata`` for a whole group."""

    markers = (V2_ARRAY, V2_GROUP)
    documents = (V2_ARRAY, V2_GROUP, V2_ATTRIBUTES, V2_CONSOLIDATED)

    def read(self, store: Store, path: str, documents: DocumentReader) -> Node | None:
        main = documents.get(store, join(path, V2_ARRAY))
        is_array = main is not None
        if main is None and (main := documents.get(store, join(path, V2_GROUP))) is None:
            return None
        # Nodes of this version are rare, so their reader is imported when there is one.
        from zarrfs.format.metadata.older.v2 import (  # noqa: PLC0415
            read_array_v2,
            read_consolidated_v2,
            read_group_v2,
        )

        found = {V2_ARRAY if is_array else V2_GROUP: main.data}
        for name in (V2_ATTRIBUTES,) if is_array else (V2_ATTRIBUTES, V2_CONSOLIDATED):
            if (blob := documents.get(store, join(path, name))) is not None:
                found[name] = blob.data

        def parsed(name: str) -> Any:
            return documents.parse(found[name], name) if name in found else None

        def parse(damage: Damage) -> NodeMetadata:
            attributes = None
            with noting(damage):
                attributes = parsed(V2_ATTRIBUTES)
            if is_array:
                return read_array_v2(parsed(V2_ARRAY), attributes, damage)
            children = group = None
            with noting(damage):
                if V2_CONSOLIDATED in found:
                    children = read_consolidated_v2(parsed(V2_CONSOLIDATED))
            try:
                group = documents.parse(found[V2_GROUP], V2_GROUP)
            except MetadataError as error:
                damage.append(str(error))
                group = {"zarr_format": 2}
            return read_group_v2(group, attributes, children, damage)

        size = sum(map(len, found.values()))
        with documents.room_for(size):
            return _node(path, parse, tuple(found), main.info.mtime_ns, size)

    def read_consolidated(self, path: str, documents: Any, size: int) -> Node | None:
        from zarrfs.format.metadata.older.v2 import read_array_v2, read_group_v2  # noqa: PLC0415

        if not isinstance(documents, Mapping) or documents.keys().isdisjoint(self.markers):
            return None
        attributes = documents.get(V2_ATTRIBUTES)

        def parse(damage: Damage) -> NodeMetadata:
            if V2_ARRAY in documents:
                return read_array_v2(documents[V2_ARRAY], attributes, damage)
            return read_group_v2(documents[V2_GROUP], attributes, None, damage)

        return _node(path, parse, tuple(documents), None, size)


class V1Reader(NodeReader):
    """``meta`` and ``attrs``. Zarr 1 has no groups: directories above such an array have none."""

    markers = (V1_ARRAY,)
    documents = (V1_ARRAY, V1_ATTRIBUTES)

    def read(self, store: Store, path: str, documents: DocumentReader) -> Node | None:
        if (meta := documents.get(store, join(path, V1_ARRAY))) is None:
            return None
        from zarrfs.format.metadata.older.v1 import read_array_v1  # noqa: PLC0415

        attributes = documents.get(store, join(path, V1_ATTRIBUTES))
        names = (V1_ARRAY,) if attributes is None else (V1_ARRAY, V1_ATTRIBUTES)
        main = meta.data

        def parse(damage: Damage) -> NodeMetadata:
            attrs = None
            if attributes is not None:
                with noting(damage):
                    attrs = documents.parse(attributes.data, V1_ATTRIBUTES)
            return read_array_v1(documents.parse(main, V1_ARRAY), attrs, damage)

        size = len(main) + (0 if attributes is None else len(attributes.data))
        with documents.room_for(size):
            return _node(path, parse, names, meta.info.mtime_ns, size)


READERS: Mapping[int, NodeReader] = {3: V3Reader(), 2: V2Reader(), 1: V1Reader()}
"""By version, newest first: if a directory has documents of several, the first is served."""


def join(path: str, name: str) -> str:
    """A key below a node's path."""
    return f"{path}/{name}" if path else name


def _node(
    path: str,
    parse: Callable[[Damage], NodeMetadata],
    documents: tuple[str, ...],
    mtime_ns: int | None,
    size: int,
) -> Node:
    damage: Damage = []
    try:
        metadata = parse(damage)
    except MetadataError as error:
        return Node(path, None, str(error), documents, mtime_ns)
    except Exception as error:
        # An error of this program or of a package must not affect other nodes.
        log.exception("cannot read the metadata of %s", f"/{path}")
        problem = f"cannot be read: {reason_of(error)}"
        return Node(path, None, problem, documents, mtime_ns)
    metadata = metadata._replace(attributes=kept(metadata.attributes, size))
    return Node(path, metadata, "; ".join(damage) or None, documents, mtime_ns)


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
