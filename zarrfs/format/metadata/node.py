"""The frozen form of the metadata of an array or a group, the same for every Zarr version."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_layout import ChunkKeyEncoding, ChunkLayout
from zarrfs.format.metadata.kept import Consolidated, KeptAttributes


class ArrayMetadata(NamedTuple):
    """One array.

    layout : grids, codecs, data type and fill value, ready for reading.
    dimension_names : None for an axis without one; empty if no axis has one.
    summary : data type, codecs and chunk key encoding in the terms of v3, for users and extended
        attributes.
    has_fill : False if the document has ``null``: zeros in zarrfs, but undefined elsewhere.
    """

    zarr_format: int
    shape: Shape
    layout: ChunkLayout
    chunk_keys: ChunkKeyEncoding
    dimension_names: tuple[str | None, ...]
    attributes: Mapping[str, Any]
    summary: Mapping[str, Any]
    has_fill: bool = True

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * self.layout.data_type.item_size

    @property
    def fingerprint(self) -> str:
        """Equal for arrays whose stored objects are read in the same way."""
        summary = json.dumps(self.summary, sort_keys=True, default=repr)
        fill = hashlib.sha256(self.layout.fill).hexdigest()
        identity = (self.zarr_format, self.shape, fill, summary)
        return hashlib.sha256(repr(identity).encode()).hexdigest()


class GroupMetadata(NamedTuple):
    """One group.

    children : the consolidated documents of all nodes below, by path relative to the group;
        None if nothing is consolidated.
    """

    zarr_format: int
    attributes: Mapping[str, Any]
    children: Consolidated | None


NodeMetadata = ArrayMetadata | GroupMetadata


def kept_bytes(metadata: NodeMetadata) -> int:
    """Bytes that are kept of those parts of metadata whose size the author chooses."""
    size = metadata.attributes.nbytes if isinstance(metadata.attributes, KeptAttributes) else 0
    if isinstance(metadata, ArrayMetadata):
        return size + len(metadata.layout.fill)
    return size + (0 if metadata.children is None else metadata.children.nbytes)
