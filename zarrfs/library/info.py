"""Describes a source: its nodes, their layout, stored chunks, and the files of a mount."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.node_readers import Node
from zarrfs.errors import (
    BudgetExceeded,
    StoreError,
    StoreListingUnsupported,
    UnsupportedError,
)
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.nodes.flat_array import FlatArray
from zarrfs.fs.nodes.nodes import MountedArray
from zarrfs.fs.nodes.place import Place
from zarrfs.fs.nodes.tree import Tree
from zarrfs.library.checking.stored_objects import StoredObjects, stored_objects
from zarrfs.library.source import SourceOptions, facts_around
from zarrfs.store.base import Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.views.facts.facts import Facts
from zarrfs.views.facts.gather import gather
from zarrfs.views.facts.said import as_json as facts_json
from zarrfs.views.headers.registry import DEFAULT

_HIDDEN = ".zarrfs"
_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ServedName:
    """An entry of an array's directory in a mount.

    nbytes : of a file, where it is known without reading chunks.
    files : of a directory, how many are in it and below.
    """

    name: str
    nbytes: int | None
    files: int | None


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """One array.

    metadata : None where it cannot be served; ``problem`` says why.
    stored : None where the store does not tell; ``problem`` may say why.
    served : what its directory would hold.
    facts : what its elements mean; None where it cannot be served.
    """

    path: str
    metadata: ArrayMetadata | None
    problem: str | None
    stored: StoredObjects | None
    served: tuple[ServedName, ...]
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group and what is below it.

    nodes : depth below the group, and the node; parents come before their children.
    complete : whether these are all.
    problem : why not, where that is not because of their number.
    """

    path: str
    metadata: GroupMetadata
    nodes: tuple[tuple[int, Node], ...]
    complete: bool
    problem: str | None


def info(
    source: str,
    path: str = "",
    *,
    nodes: int = 1000,
    depth: int | None = None,
    storage_options: Mapping[str, object] = _NO_OPTIONS,
) -> ArrayInfo | GroupInfo:
    """Blocks. Asks and lists a bounded number of objects, however large the source is.

    path : of the node below the source; empty for the source itself.
    nodes : how many nodes of a hierarchy are shown at most.
    depth : how many levels of it; None: all.
    storage_options : given to fsspec as they are; never shown.

    Raises NodeNotFound where there is no Zarr array or group, and StoreError.
    """
    options = SourceOptions(storage_options=storage_options)
    with closing(open_store(source, StoreConfig(storage_options))) as store:
        hierarchy = Hierarchy(store)
        node = hierarchy.reach(path)
        if isinstance(node.metadata, GroupMetadata):
            return _group(hierarchy, node, node.metadata, nodes, depth)
        if node.metadata is None:
            return ArrayInfo(node.path, None, node.problem, None, ())
        facts = gather(node.metadata, facts_around(source, store, node, options))
        return _array(store, node, node.metadata, facts)


def _group(
    hierarchy: Hierarchy, node: Node, metadata: GroupMetadata, most: int, depth: int | None
) -> GroupInfo:
    problem = node.problem
    levels = math.inf if depth is None else depth
    nodes: list[tuple[int, Node]] = []
    try:
        nodes = list(islice(hierarchy.below(node.path, levels), most + 1))
    except StoreListingUnsupported:
        problem = "the store cannot list what is below"
    except StoreError as error:
        problem = str(error)
    return GroupInfo(node.path, metadata, tuple(nodes[:most]), len(nodes) <= most, problem)


def _array(store: Store, node: Node, metadata: ArrayMetadata, facts: Facts) -> ArrayInfo:
    problem, stored = node.problem, None
    served: tuple[ServedName, ...] = ()
    try:
        stored = stored_objects(store, node.path, metadata)
    except StoreError as error:
        problem = str(error)
    try:
        served = tuple(_served(store, node.path))
    except (BudgetExceeded, UnsupportedError, StoreError) as error:
        problem = str(error)
    return ArrayInfo(node.path, metadata, problem, stored, served, facts)


def _served(store: Store, path: str) -> Iterator[ServedName]:
    """Asked of the very file system that a mount shows."""
    tree = Tree(store, FileSystemConfig(views=(DEFAULT,)))
    try:
        place = tree.mount_root()
        for name in filter(None, path.split("/")):
            place = tree.child(place, name)
        for name, local in place.node.names():
            if name != _HIDDEN:
                yield _served_name(tree, place, name, local)
    finally:
        tree.stop()


def _served_name(tree: Tree, place: Place, name: str, local: int) -> ServedName:
    node = place.node
    below = node.place(local)
    if below is not None and not below.is_file:
        return ServedName(name, None, math.prod(below.tree.grid.counts))
    if (key := node.document(local)) is not None:
        found = tree.store.info(key)
        return ServedName(name, None if found is None else found.size, None)
    size = None
    # Headers are made for their size; the lines of elements without a fixed size are not counted.
    if (
        isinstance(node, MountedArray)
        and node.is_data(local)
        and (isinstance(node, FlatArray) or not node.size_blocks(local))
    ):
        size = node.data_size(local)
    return ServedName(name, size, None)


def as_json(found: ArrayInfo | GroupInfo) -> dict[str, Any]:
    """The same as JSON, for programs."""
    if isinstance(found, GroupInfo):
        return {
            "node_type": "group",
            "path": found.path,
            "zarr_format": found.metadata.zarr_format,
            "attributes": dict(found.metadata.attributes),
            "complete": found.complete,
            "problem": found.problem,
            "nodes": [_node_json(node) for _, node in found.nodes],
        }
    document: dict[str, Any] = {"node_type": "array", "path": found.path, "problem": found.problem}
    if found.metadata is not None:
        document |= _metadata_json(found.metadata)
        document["attributes"] = dict(found.metadata.attributes)
    if found.stored is not None:
        document["stored"] = {
            "possible": found.stored.possible,
            "present": found.stored.present,
            "bytes": found.stored.nbytes,
            "measured": found.stored.measured,
            "complete": found.stored.complete,
        }
    if found.facts is not None:
        document["facts"] = facts_json(found.facts)
    document["served"] = [
        {"name": entry.name, "bytes": entry.nbytes, "files": entry.files} for entry in found.served
    ]
    return document


def _node_json(node: Node) -> dict[str, Any]:
    document: dict[str, Any] = {"path": node.path, "problem": node.problem}
    if isinstance(node.metadata, ArrayMetadata):
        return {"node_type": "array", **document, **_metadata_json(node.metadata)}
    if isinstance(node.metadata, GroupMetadata):
        return {"node_type": "group", **document, "zarr_format": node.metadata.zarr_format}
    return {"node_type": None, **document}


def _metadata_json(metadata: ArrayMetadata) -> dict[str, Any]:
    layout = metadata.layout
    fixed = layout.data_type.fixed_size
    return {
        "zarr_format": metadata.zarr_format,
        "shape": list(metadata.shape),
        **metadata.summary,
        "dimension_names": list(metadata.dimension_names) or None,
        "item_size": layout.data_type.item_size if fixed else None,
        "bytes": metadata.nbytes if fixed else None,
        "chunk_shape": list(layout.read.largest_chunk),
        "chunk_counts": list(layout.read.counts),
        "shard_shape": list(layout.stored.largest_chunk) if layout.sharded else None,
        "shard_counts": list(layout.stored.counts) if layout.sharded else None,
    }
