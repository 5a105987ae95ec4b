"""Reading everything again while the mount is used."""

from __future__ import annotations

import json
from typing import Any

from zarrfs.array.node_readers import Node
from zarrfs.format.metadata.node import ArrayMetadata


def same_metadata(old: Node, new: Node) -> bool:
    """Whether what was opened from ``old`` serves ``new`` as well."""
    return _said(old) == _said(new)


def _said(node: Node) -> str:
    metadata: Any = node.metadata
    said: list[object] = [node.problem, list(node.documents), type(metadata).__name__]
    if metadata is not None:
        said += [metadata.zarr_format, metadata.attributes]
    if isinstance(metadata, ArrayMetadata):
        said += [metadata.shape, metadata.dimension_names, metadata.summary]
    # As text, because a fill value of NaN is not equal to itself.
    return json.dumps(said, default=dict, sort_keys=True)
