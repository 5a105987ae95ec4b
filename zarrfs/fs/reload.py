"""Reading everything again while the mount is used."""

from __future__ import annotations

import json
from typing import Any

from zarrfs.array.node_readers import Node
from zarrfs.format.metadata.node import ArrayMetadata


def same_metadata(old: Node, new: Node) -> bool:
    """Whether what was opened from ``old`` serves ``new`` as well."""
    return _said(old) == _said(new)


def same_data(old: Node, new: Node) -> bool:
    """Whether both are arrays whose elements lie in the same way: only more is said of them."""
    a, b = old.metadata, new.metadata
    if not isinstance(a, ArrayMetadata) or not isinstance(b, ArrayMetadata):
        return False
    layouts = [[m.zarr_format, m.shape, m.summary] for m in (a, b)]
    one, other = (json.dumps(layout, default=dict, sort_keys=True) for layout in layouts)
    return one == other


def _said(node: Node) -> str:
    metadata: Any = node.metadata
    said: list[object] = [node.problem, list(node.documents), type(metadata).__name__]
    if metadata is not None:
        said += [metadata.zarr_format, metadata.attributes]
    if isinstance(metadata, ArrayMetadata):
        said += [metadata.shape, metadata.dimension_names, metadata.summary]
    # As text, because a fill value of NaN is not equal to itself.
    return json.dumps(said, default=dict, sort_keys=True)
