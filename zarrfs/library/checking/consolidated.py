"""Compares consolidated metadata with each node's own documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from zarrfs.array.node_readers import READERS, Node
from zarrfs.bounds import shown
from zarrfs.format.metadata.kept import Consolidated
from zarrfs.format.metadata.node import ArrayMetadata, NodeMetadata

# Members of the summary of an array that say how its elements are stored.
_MEMBERS = ("data_type", "chunk_grid", "codecs", "fill_value", "chunk_key_encoding", "order")


class ConsolidatedList:
    """The documents in the consolidated metadata of one group.

    key : of the document that holds them.
    """

    def __init__(self, group: Node, key: str, documents: Consolidated) -> None:
        assert group.metadata is not None
        self.key = key
        self._path = group.path
        self._reader = READERS[group.metadata.zarr_format]
        self._documents = documents
        self._seen: set[str] = set()

    def differences(self, node: Node) -> Iterator[str]:
        """How a node below the group differs from what is listed of it; none for other versions."""
        path = node.path.removeprefix(self._path).lstrip("/")
        self._seen.add(path)
        if path not in self._documents:
            if not self._documents.has_below(path):
                yield f"consolidated metadata do not list {path}"
            return
        size = self._documents.size_of(path)
        listed = self._reader.read_consolidated(node.path, self._documents[path], size)
        if listed is None or node.metadata is None:
            return
        if listed.metadata is None:
            yield f"consolidated metadata of {path} cannot be served: {listed.problem}"
            return
        for what, old, new in _compared(listed.metadata, node.metadata):
            yield shown(
                f"consolidated metadata give {path} the {what} {_text(old)}, "
                f"its own document {_text(new)}"
            )

    def names_in(self, group: Node) -> set[str]:
        """Names of the nodes in a group at or below this one."""
        return self._documents.names_below(group.path.removeprefix(self._path).lstrip("/"))

    def not_seen(self) -> list[str]:
        """Paths below the group's members that `differences` was not asked for."""
        deep = (path for path in self._documents if "/" in path)
        return [p for p in deep if p not in self._seen and p.partition("/")[0] in self._seen]


def _compared(listed: NodeMetadata, own: NodeMetadata) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(listed, ArrayMetadata) != isinstance(own, ArrayMetadata):
        kinds = ["array" if isinstance(each, ArrayMetadata) else "group" for each in (listed, own)]
        yield "node type", kinds[0], kinds[1]
        return
    if isinstance(listed, ArrayMetadata) and isinstance(own, ArrayMetadata):
        pairs: list[tuple[str, Any, Any]] = [("shape", list(listed.shape), list(own.shape))]
        pairs += [(name, listed.summary.get(name), own.summary.get(name)) for name in _MEMBERS]
        pairs.append(("dimension names", listed.dimension_names, own.dimension_names))
        yield from (pair for pair in pairs if _text(pair[1]) != _text(pair[2]))
    old, new = dict(listed.attributes), dict(own.attributes)
    for name in sorted({*old, *new}):
        if _text(old.get(name)) != _text(new.get(name)):
            yield f"attribute {name}", old.get(name), new.get(name)


def _text(value: Any) -> str:
    # As text, because a fill value of NaN is not equal to itself.
    return json.dumps(value, default=dict, sort_keys=True)
