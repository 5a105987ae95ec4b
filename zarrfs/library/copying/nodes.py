"""The nodes to be copied, and the metadata of their copies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.create import new_documents
from zarrfs.array.node_readers import Node, join
from zarrfs.errors import MetadataError, UsageError
from zarrfs.format.making.new_array import json_document
from zarrfs.format.metadata.documents import (
    V2_ATTRIBUTES,
    V2_CONSOLIDATED,
    V2_DIMENSIONS,
    V2_GROUP,
    V3_NODE,
)
from zarrfs.format.metadata.lenient import name_non_finite
from zarrfs.format.metadata.members import plain
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.library.copying.form import CopyForm, new_form
from zarrfs.library.copying.missing import with_missing
from zarrfs.library.copying.ome import axis_names, in_version
from zarrfs.views.elements.region import Region, parse_region

# Groups within groups.
_DEEPEST = 256


class PlannedArray(NamedTuple):
    """One array: in the source, below the copied node, and as it will be."""

    path: str
    below: str
    source: ArrayMetadata
    documents: Mapping[str, bytes]
    region: Region


class PlannedNodes:
    """All nodes below a path of a source.

    groups : their number.
    problems : why some nodes cannot be copied.
    """

    def __init__(self, hierarchy: Hierarchy, path: str, region: str, form: CopyForm) -> None:
        """Raises as `Hierarchy.reach`, UsageError for a form that an array cannot have."""
        self.documents = Documents()
        self.arrays: list[PlannedArray] = []
        self.groups = 0
        self.problems: list[str] = []
        self._axes: dict[str, list[str]] = {}
        nodes = list(_walk(hierarchy, hierarchy.reach(path)))
        known = [node.metadata.zarr_format for node in nodes if node.metadata is not None]
        first = next((version for version in known if version), 0)
        self._form = replace(form, zarr_format=form.version(first))
        self._root = nodes[0].path
        if region and not isinstance(nodes[0].metadata, ArrayMetadata):
            raise UsageError("a --region is for one array: name it with --path")
        for node in nodes:
            self._add(node, region)
        ranks = {len(array.source.shape) for array in self.arrays}
        for option, rank in form.ranks().items():
            if ranks and rank not in ranks:
                axes = "1 axis" if rank == 1 else f"{rank} axes"
                raise UsageError(f"--{option} is for arrays of {axes}, and there is none")

    def _add(self, node: Node, region: str) -> None:
        metadata = node.metadata
        if metadata is None:
            reason = node.problem or "cannot be served"
            self.problems.append(f"/{node.path}: {reason.removeprefix(f'{node.path}/')}")
            return
        below = node.path.removeprefix(self._root).lstrip("/")
        attributes: Mapping[str, Any] = metadata.attributes
        version = self._form.zarr_format or 3
        if version != metadata.zarr_format:
            attributes = in_version(attributes, version)
        if not below:
            attributes = {**attributes, **self._form.attributes}
        if isinstance(metadata, GroupMetadata):
            self.groups += 1
            for name, axes in axis_names(attributes).items():
                self._axes[join(below, name)] = axes
            consolidated = metadata.children is not None
            attributes = _as_json(attributes)
            self.documents.add_group(below, attributes, version, consolidated=consolidated)
            return
        self._add_array(node.path, below, metadata, attributes, region)

    def _add_array(
        self,
        path: str,
        below: str,
        metadata: ArrayMetadata,
        attributes: Mapping[str, Any],
        region: str,
    ) -> None:
        part = parse_region(region, metadata.shape)
        names = self._axes.get(below, [])
        wants = self._form.zarr_format == 3 and not metadata.dimension_names
        if wants and len(names) == len(metadata.shape):
            metadata = metadata._replace(dimension_names=tuple(names))
        if below and not metadata.shape and metadata.zarr_format == 3:
            # As xarray says it in Zarr 2. Otherwise, it would not open the group of the copy.
            metadata = metadata._replace(attributes={**metadata.attributes, V2_DIMENSIONS: []})
        try:
            array = new_form(metadata, attributes, self._form, part.shape)
            kept = array.attributes
            if not names:
                array, kept = with_missing(array, kept, metadata)
            array = replace(array, attributes=_as_json(kept))
            documents = new_documents(array)
        except (ValueError, MetadataError, UsageError) as error:
            raise UsageError(f"/{path}: {error}") from error
        self.documents.add_array(below, documents)
        self.arrays.append(PlannedArray(path, below, metadata, documents, part))


def _as_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes without NaN and infinities, which JSON lacks, though zarr-python writes them."""
    named: dict[str, Any] = name_non_finite(plain(attributes))
    return named


def _walk(hierarchy: Hierarchy, node: Node) -> Iterator[Node]:
    yield node
    is_group = isinstance(node.metadata, GroupMetadata)
    for depth, below in hierarchy.below(node.path) if is_group else ():
        if depth > _DEEPEST:
            raise UsageError(f"/{below.path}: lies too deep, or below a link to a group above it")
        yield below


class Documents:
    """Documents by the path of their node, in the order in which nodes are added, root first."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, Any]] = {}
        self._consolidated: dict[str, int] = {}

    def add_array(self, path: str, documents: Mapping[str, bytes]) -> None:
        self._nodes[path] = {name: json.loads(data) for name, data in documents.items()}

    def add_group(
        self, path: str, attributes: Mapping[str, Any], zarr_format: int, *, consolidated: bool
    ) -> None:
        if consolidated:
            self._consolidated[path] = zarr_format
        if zarr_format == 2:
            self._nodes[path] = {V2_GROUP: {"zarr_format": 2}}
            if attributes:
                self._nodes[path][V2_ATTRIBUTES] = attributes
            return
        group = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        self._nodes[path] = {V3_NODE: group}

    def __len__(self) -> int:
        return sum(map(len, self._nodes.values())) + sum(
            zarr_format == 2 for zarr_format in self._consolidated.values()
        )

    def in_order(self) -> Iterator[tuple[str, bytes]]:
        """Keys and bytes. A node comes after all nodes below it, so the root is last."""
        for path in sorted(self._nodes, key=lambda path: (-path.count("/"), path == "")):
            documents = dict(self._nodes[path])
            version = self._consolidated.get(path)
            if version == 3:
                below = dict(self._below(path))
                documents[V3_NODE] = {
                    **documents[V3_NODE],
                    "consolidated_metadata": {
                        "kind": "inline",
                        "must_understand": False,
                        "metadata": {name: each[V3_NODE] for name, each in below.items()},
                    },
                }
            if version == 2:
                flat = {
                    join(name, document): value
                    for name, each in (("", documents), *self._below(path))
                    for document, value in each.items()
                }
                yield (
                    join(path, V2_CONSOLIDATED),
                    json_document({"zarr_consolidated_format": 1, "metadata": flat}),
                )
            # The document that makes it a node is the first of its documents.
            for name, value in reversed(documents.items()):
                yield join(path, name), json_document(value)

    def _below(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        start = f"{path}/" if path else ""
        for other, documents in self._nodes.items():
            if other != path and other.startswith(start):
                yield other.removeprefix(start), documents
