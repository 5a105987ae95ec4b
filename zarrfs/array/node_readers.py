"""How each version of Zarr keeps the metadata of a node, read from a store or consolidated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from zarrfs.errors import MetadataError
from zarrfs.format.metadata.documents import (
    V1_ARRAY,
    V1_ATTRIBUTES,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V2_CONSOLIDATED,
    V2_GROUP,
    V3_NODE,
)
from zarrfs.format.metadata.editing.json_text import load_json
from zarrfs.format.metadata.node import NodeMetadata
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.store.base import Blob, Store

log = logging.getLogger(__name__)

# Larger than any document seen in practice, consolidated ones of many thousand arrays
# included; small enough that parsing one cannot exhaust memory.
LARGEST_DOCUMENT = 64 << 20


class Node(NamedTuple):
    """An array or a group.

    path : below the store's root; empty for the root.
    metadata : None where it cannot be served; ``problem`` then says why.
    documents : names of its stored metadata documents, beside its chunks.
    mtime_ns : of its metadata, where the store tells.
    """

    path: str
    metadata: NodeMetadata | None
    problem: str | None
    documents: tuple[str, ...]
    mtime_ns: int | None


class NodeReader(Protocol):
    """Reads the nodes of one version of Zarr.

    markers : documents of which a node has at least one.
    documents : all that `read` asks for.
    """

    @property
    def markers(self) -> Sequence[str]: ...

    @property
    def documents(self) -> Sequence[str]: ...

    def read(self, store: Store, path: str) -> Node | None:
        """The node that is stored at ``path``; None if there is none of this version."""
        ...

    def read_consolidated(self, path: str, documents: Any) -> Node | None:
        """The node of which a group above holds the parsed ``documents``."""
        ...


class V3Reader:
    """One ``zarr.json``."""

    markers = documents = (V3_NODE,)

    def read(self, store: Store, path: str) -> Node | None:
        key = join(path, V3_NODE)
        blob = _get(store, key)
        if blob is None:
            return None
        return _node(
            path,
            lambda: parse_node(load_json(bytes(blob.data), key), key),
            (V3_NODE,),
            blob.info.mtime_ns,
        )

    def read_consolidated(self, path: str, documents: Any) -> Node | None:
        key = join(path, V3_NODE)
        return _node(path, lambda: parse_node(documents, key), (V3_NODE,), None)


class V2Reader:
    """``.zarray`` or ``.zgroup``, with ``.zattrs``, and ``.zmetadata`` for a whole group."""

    markers = (V2_ARRAY, V2_GROUP)
    documents = (V2_ARRAY, V2_GROUP, V2_ATTRIBUTES, V2_CONSOLIDATED)

    def read(self, store: Store, path: str) -> Node | None:
        # Arrays of this version are not everywhere, and neither is what reads them.
        from zarrfs.format.metadata.v2 import parse_array_v2, parse_group_v2  # noqa: PLC0415

        main = _get(store, join(path, V2_ARRAY))
        is_array = main is not None
        if main is None and (main := _get(store, join(path, V2_GROUP))) is None:
            return None
        found = {V2_ARRAY if is_array else V2_GROUP: bytes(main.data)}
        for name in (V2_ATTRIBUTES,) if is_array else (V2_ATTRIBUTES, V2_CONSOLIDATED):
            if (blob := _get(store, join(path, name))) is not None:
                found[name] = bytes(blob.data)
        attributes = found.get(V2_ATTRIBUTES)

        def parse() -> NodeMetadata:
            if is_array:
                return parse_array_v2(found[V2_ARRAY], attributes)
            return parse_group_v2(found[V2_GROUP], attributes, found.get(V2_CONSOLIDATED))

        return _node(path, parse, tuple(found), main.info.mtime_ns)

    def read_consolidated(self, path: str, documents: Any) -> Node | None:
        from zarrfs.format.metadata.v2 import read_array_v2, read_group_v2  # noqa: PLC0415

        if not isinstance(documents, Mapping):
            return None
        attributes = documents.get(V2_ATTRIBUTES)
        if V2_ARRAY in documents:
            array = documents[V2_ARRAY]
            return _node(path, lambda: read_array_v2(array, attributes), tuple(documents), None)
        if V2_GROUP in documents:
            group = documents[V2_GROUP]
            return _node(path, lambda: read_group_v2(group, attributes), tuple(documents), None)
        return None


class V1Reader:
    """``meta`` and ``attrs``. There were no groups; what is above such an array is of others."""

    markers = (V1_ARRAY,)
    documents = (V1_ARRAY, V1_ATTRIBUTES)

    def read(self, store: Store, path: str) -> Node | None:
        if (meta := _get(store, join(path, V1_ARRAY))) is None:
            return None
        from zarrfs.format.metadata.v1 import parse_array_v1  # noqa: PLC0415

        attributes = _get(store, join(path, V1_ATTRIBUTES))
        documents = (V1_ARRAY,) if attributes is None else (V1_ARRAY, V1_ATTRIBUTES)
        attrs = None if attributes is None else bytes(attributes.data)
        return _node(
            path,
            lambda: parse_array_v1(bytes(meta.data), attrs),
            documents,
            meta.info.mtime_ns,
        )

    def read_consolidated(self, path: str, documents: Any) -> Node | None:
        return None


READERS: Mapping[int, NodeReader] = {3: V3Reader(), 2: V2Reader(), 1: V1Reader()}
"""By version, newest first: where a directory has documents of several, the first is served."""


def join(path: str, name: str) -> str:
    """A key below a node's path."""
    return f"{path}/{name}" if path else name


def _get(store: Store, key: str) -> Blob | None:
    return store.get(key, limit=LARGEST_DOCUMENT)


def _node(
    path: str,
    parse: Callable[[], NodeMetadata],
    documents: tuple[str, ...],
    mtime_ns: int | None,
) -> Node:
    try:
        return Node(path, parse(), None, documents, mtime_ns)
    except MetadataError as error:
        return Node(path, None, str(error), documents, mtime_ns)
    except Exception as error:
        # A fault of this program or of a package. The node's siblings do not suffer.
        log.exception("cannot read the metadata of %s", f"/{path}")
        said = " ".join(str(error).split())
        problem = f"cannot be read: {type(error).__name__}: {said}"
        return Node(path, None, problem, documents, mtime_ns)
