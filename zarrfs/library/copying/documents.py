"""The metadata documents of a copied hierarchy, consolidated where the source has them so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.array.node_readers import join
from zarrfs.format.making.new_array import json_document
from zarrfs.format.metadata.documents import V2_ATTRIBUTES, V2_CONSOLIDATED, V2_GROUP, V3_NODE


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
