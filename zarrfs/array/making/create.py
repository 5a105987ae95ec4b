"""Creates a new array in a store, and never overwrites data of other writers."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.array_documents import parse_documents
from zarrfs.array.making.stored_keys import delete_keys, keys_below
from zarrfs.array.node_readers import LARGEST_DOCUMENT, Node, join
from zarrfs.errors import (
    AlreadyExists,
    StoreConflict,
    StoreError,
    StoreListingUnsupported,
    StoreReadOnly,
    UsageError,
)
from zarrfs.format.making.array_documents import documents_v2, documents_v3
from zarrfs.format.making.array_template import template, with_defaults
from zarrfs.format.making.new_array import NewArray
from zarrfs.format.making.usual_choice import with_usual
from zarrfs.format.metadata.documents import (
    DOCUMENT_NAMES,
    V2_ARRAY,
    V2_ATTRIBUTES,
    V3_NODE,
    load_json,
)
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.store.base import ObjectInfo, Store

# Top-level names of chunks in every chunk key encoding.
_CHUNK_NAME = re.compile(r"c([./].*)?|\d+(\.\d+)*(\.\w+)?/?", re.ASCII)
_MOST_NAMES = 10_000


class IfExists(enum.Enum):
    """The action if an array exists."""

    FAIL = "fail"
    OPEN = "open"
    REPLACE = "replace"


class Outcome(enum.Enum):
    CREATED = "created"
    EXISTED = "existed"
    REPLACED = "replaced"


def new_documents(array: NewArray) -> dict[str, bytes]:
    """The metadata documents by name, that of the array itself first.

    Raises `UsageError` for contradictory or malformed parameters, and `MetadataError`.
    """
    try:
        if array.usual:
            array = with_usual(array)
        return documents_v2(array) if array.zarr_format == 2 else documents_v3(array)
    except ValueError as error:
        raise UsageError(str(error)) from error


def create_array(
    store: Store,
    path: str,
    array: NewArray,
    if_exists: IfExists = IfExists.FAIL,
) -> Outcome:
    """Create an array at ``path`` below the store's root. Blocks.

    If several programs create it at the same time, one succeeds, as far as the store compares and
    writes in one step. A program that is stopped while it replaces an array
    leaves no array there. A program that is stopped while it creates an array of Zarr 2 may leave
    it without its attributes.

    Raises `AlreadyExists` if another node is there, `UsageError` and `MetadataError` for an array
    that cannot be created, and `StoreError`.
    """
    documents = new_documents(array)
    if (reason := store.read_only) is not None:
        raise StoreReadOnly(store.url, reason)
    # Read before the check that there is no array. A creator writes attributes after the array's
    # document, so these come from a creator that was stopped.
    left = store.info(join(path, V2_ATTRIBUTES))
    node = Hierarchy(store).node(path)
    if node is not None and if_exists is IfExists.OPEN:
        check_matches(store, node, array)
        return Outcome.EXISTED
    if node is not None and if_exists is not IfExists.REPLACE:
        raise AlreadyExists(f"{_shown(store, path)}: {_what(node)}")
    try:
        outcome = _make_room(store, path, node, if_exists)
        _put(store, path, documents, left if outcome is Outcome.CREATED else None)
    except StoreConflict:
        node = Hierarchy(store).node(path)
        if node is not None and if_exists is IfExists.OPEN:
            check_matches(store, node, array)
            return Outcome.EXISTED
        where = _shown(store, path)
        raise AlreadyExists(f"{where}: another program created an array at the same time") from None
    return outcome


def _put(store: Store, path: str, documents: Mapping[str, bytes], left: ObjectInfo | None) -> None:
    """Raises StoreConflict if another program is faster.

    If several programs put the same document of an array, more than one may succeed. The attributes
    then decide which of them has created the array.

    left : attributes found without an array.
    """
    state = None if left is None else left.generation
    (name, document), *others = documents.items()
    store.put(join(path, name), [document], expected=None)
    for name, document in others:
        store.put(join(path, name), [document], expected=state)
    if V2_ARRAY in documents and left is not None and not others:
        store.delete(join(path, V2_ATTRIBUTES), expected=state)


def check_matches(store: Store, node: Node, array: NewArray) -> None:
    """Raises `AlreadyExists` if the existing array is not as ``array`` specifies.

    Properties that ``array`` leaves open may have any value. The existing array may have more
    attributes.
    """
    where = _shown(store, node.path)
    if not isinstance(node.metadata, ArrayMetadata):
        raise AlreadyExists(f"{where}: {_what(node)}")
    there = node.metadata
    if (array.zarr_format or there.zarr_format) != there.zarr_format:
        raise AlreadyExists(f"{where}: is an array of Zarr {there.zarr_format}")
    if there.zarr_format == 1:
        raise AlreadyExists(f"{where}: is an array of Zarr 1")
    try:
        documents = new_documents(with_defaults(array, stored_template(store, node)))
    except (ValueError, UsageError) as error:
        raise AlreadyExists(f"{where}: is another array: {error}") from error
    wanted = parse_documents(documents)
    for what, differs, ours, theirs in _compared(wanted, there):
        if differs:
            raise AlreadyExists(
                f"{where}: is another array: {what} {theirs}, asked for is {ours}"[:1000]
            )
    for name, value in wanted.attributes.items():
        if there.attributes.get(name, ...) != value:
            raise AlreadyExists(f"{where}: is another array: attribute {name!r} differs")


def _compared(a: ArrayMetadata, b: ArrayMetadata) -> Iterator[tuple[str, bool, Any, Any]]:
    """The compared properties: name, whether they differ, and both values in readable form."""
    one, other = a.layout, b.layout
    yield "shape", a.shape != b.shape, list(a.shape), list(b.shape)
    same_type = (one.data_type.name, one.data_type.dtype) == (
        *(other.data_type.name, other.data_type.dtype),
    )
    yield "data type", not same_type, a.summary["data_type"], b.summary["data_type"]
    for what, mine, theirs in (
        ("chunk shape", one.read.largest_chunk, other.read.largest_chunk),
        ("shard shape", one.stored.largest_chunk, other.stored.largest_chunk),
        ("chunk counts", one.stored.counts, other.stored.counts),
    ):
        yield what, mine != theirs, list(mine), list(theirs)
    pipelines = (one.pipeline, one.levels) != (other.pipeline, other.levels)
    for what, differs, member in (
        ("fill value", one.fill != other.fill, "fill_value"),
        ("codecs", pipelines, "codecs"),
        ("chunk key encoding", a.chunk_keys != b.chunk_keys, "chunk_key_encoding"),
    ):
        yield what, differs, json.dumps(a.summary[member]), json.dumps(b.summary[member])
    names = (list(a.dimension_names), list(b.dimension_names))
    yield "dimension names", names[0] != names[1], *names


def stored_template(store: Store, node: Node) -> NewArray:
    """The form of an array of version 2 or 3. Raises StoreConflict, MetadataError."""
    name = V3_NODE if V3_NODE in node.documents else V2_ARRAY
    key = join(node.path, name)
    if (blob := store.get(key, limit=LARGEST_DOCUMENT)) is None:
        raise StoreConflict(key, "was deleted while it was read")
    assert isinstance(node.metadata, ArrayMetadata)
    where = join(store.url, key)
    return template(load_json(bytes(blob.data), where), where, node.metadata.attributes)


def _what(node: Node) -> str:
    if isinstance(node.metadata, ArrayMetadata):
        return f"an array of shape {list(node.metadata.shape)} already exists"
    if node.metadata is None:
        return f"an array or group exists that cannot be read: {node.problem}"
    return "a group exists, which --overwrite does not replace: remove the group first"


def _make_room(store: Store, path: str, node: Node | None, if_exists: IfExists) -> Outcome:
    """Raises AlreadyExists for a node that is not replaced, StoreConflict for one just created."""
    names = _names(store, path) if node is None else []
    if node is None and not names:
        return Outcome.CREATED
    where = _shown(store, path)
    if node is not None:
        if isinstance(node.metadata, GroupMetadata):
            raise AlreadyExists(f"{where}: {_what(node)}")
    elif not DOCUMENT_NAMES.isdisjoint(names):
        raise StoreConflict(path, "has metadata now")
    elif not all(map(_is_of_chunks, names)):
        raise AlreadyExists(f"{where}: is not empty (it has {names[0]!r}) and is not a Zarr array")
    if if_exists is not IfExists.REPLACE:
        raise AlreadyExists(f"{where}: holds chunks of an array without metadata")
    _remove(store, path)
    return Outcome.REPLACED


def _is_of_chunks(name: str) -> bool:
    return _CHUNK_NAME.fullmatch(name) is not None


def _names(store: Store, path: str) -> list[str]:
    """Names below ``path``. Attributes without an array, from a stopped creator, do not count."""
    try:
        names = islice(store.list_dir(path), _MOST_NAMES)
        return [name for name in names if name != V2_ATTRIBUTES]
    except StoreListingUnsupported:
        return []


def _remove(store: Store, path: str) -> None:
    """Delete an array, metadata first, so that no reader sees half of it. Other files stay."""
    for name in DOCUMENT_NAMES:
        key = join(path, name)
        if (info := store.info(key)) is not None:
            store.delete(key, expected=info.generation)
    delete_keys(store, _chunk_keys(store, path))


def _chunk_keys(store: Store, path: str) -> Iterator[str]:
    try:
        for name in store.list_dir(path):
            if not _is_of_chunks(name):
                continue
            key = join(path, name)
            if name.endswith("/"):
                yield from (key + below for below in keys_below(store, key[:-1]))
            else:
                yield key
    except StoreListingUnsupported:
        raise StoreError(path, "cannot be replaced: the store does not list its chunks") from None


def _shown(store: Store, path: str) -> str:
    root = store.local_path or store.url
    return join(root.rstrip("/"), path) if path else root
