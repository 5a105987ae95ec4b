"""Extended attributes: what metadata say, and what zarrfs adds.

``user.zarr.*`` is as stored, in JSON where it is not a plain string;
``user.zarrfs.*`` is ours.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.fs.nodes.nodes import MountedArray, MountedNode, TreePlace

# The kernel's limits, see xattr(7).
_LONGEST_VALUE = 65536
_LONGEST_NAME = 255
_LONGEST_LIST = 65536


def node_xattrs(node: MountedNode, region: str | None = None) -> dict[str, bytes]:
    """Attributes of the directory of a node, and of the flat files of an array.

    region : the box that these show; None: all of it.
    """
    values: dict[str, Any] = {"user.zarrfs.path": f"/{node.node.path}"}
    if node.note is not None:
        values["user.zarrfs.note"] = node.note
    if region is not None:
        values["user.zarrfs.region"] = region
    metadata = node.node.metadata
    if metadata is not None:
        values["user.zarr.zarr_format"] = metadata.zarr_format
        values["user.zarr.node_type"] = "group"
        values["user.zarr.attributes"] = metadata.attributes
    if isinstance(metadata, ArrayMetadata):
        values |= _array_values(metadata)
    if metadata is not None:
        for name, value in metadata.attributes.items():
            values[f"user.zarr.attributes.{name}"] = value
    return _encode(values)


def chunk_xattrs(node: MountedArray, place: TreePlace) -> dict[str, bytes]:
    """Attributes of a chunk or shard file, and of the directories above it."""
    if not place.is_file:
        return {}
    array = node.array.array
    grid = place.tree.grid
    return _encode(
        {
            "user.zarrfs.index": list(place.chunk),
            "user.zarrfs.origin": list(grid.origin(place.chunk)),
            "user.zarrfs.shape": list(grid.chunk_shape(place.chunk)),
            "user.zarrfs.valid_shape": list(grid.valid_shape(place.chunk)),
            "user.zarrfs.store_key": array.key(node.stored_object(place)),
        }
    )


def _array_values(metadata: ArrayMetadata) -> dict[str, Any]:
    layout = metadata.layout
    values: dict[str, Any] = {f"user.zarr.{name}": v for name, v in metadata.summary.items()}
    values["user.zarr.node_type"] = "array"
    values["user.zarr.shape"] = list(metadata.shape)
    if metadata.dimension_names:
        values["user.zarr.dimension_names"] = list(metadata.dimension_names)
    values["user.zarrfs.chunk_shape"] = list(layout.read.largest_chunk)
    values["user.zarrfs.chunk_counts"] = list(layout.read.counts)
    if layout.sharded:
        values["user.zarrfs.shard_shape"] = list(layout.stored.largest_chunk)
        values["user.zarrfs.shard_counts"] = list(layout.stored.counts)
    values["user.zarrfs.dtype"] = layout.data_type.dtype.str
    return values


def _encode(values: Mapping[str, Any]) -> dict[str, bytes]:
    """Leaves out what the kernel could not carry."""
    encoded = {}
    room = _LONGEST_LIST
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, default=dict)
        try:
            data, length = os.fsencode(text), len(os.fsencode(name))
        except UnicodeEncodeError:
            continue
        if length > _LONGEST_NAME or len(data) > _LONGEST_VALUE or "\0" in name:
            continue
        # The list has a zero behind each name.
        if (room := room - length - 1) < 0:
            break
        encoded[name] = data
    return encoded
