"""The frozen form of what any version of Zarr metadata says of an array or a group."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.chunk_key import ChunkKeyEncoding
from zarrfs.format.chunk_layout import ChunkLayout
from zarrfs.format.metadata.kept import Consolidated, KeptAttributes


class ArrayMetadata(NamedTuple):
    """One array.

    layout : grids, codecs, data type and fill value, ready to read.
    dimension_names : None for an axis without one; empty if none has.
    summary : what the document says of data type, codecs and chunk key
        encoding, in the v3 vocabulary, for people and extended attributes.
    has_fill : False where v1 or v2 say ``null``: zeros here, but undefined elsewhere.
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
        """The same for arrays whose stored objects are read the same way."""
        summary = json.dumps(self.summary, sort_keys=True, default=repr)
        fill = hashlib.sha256(self.layout.fill).hexdigest()
        told = (self.zarr_format, self.shape, fill, summary)
        return hashlib.sha256(repr(told).encode()).hexdigest()


class GroupMetadata(NamedTuple):
    """One group.

    children : the consolidated documents of everything below, by path relative
        to the group; None where nothing is consolidated.
    """

    zarr_format: int
    attributes: Mapping[str, Any]
    children: Consolidated | None


NodeMetadata = ArrayMetadata | GroupMetadata


def kept_bytes(metadata: NodeMetadata) -> int:
    """Bytes that are kept of what an author can make as large as he likes."""
    size = metadata.attributes.nbytes if isinstance(metadata.attributes, KeptAttributes) else 0
    if isinstance(metadata, ArrayMetadata):
        return size + len(metadata.layout.fill)
    return size + (0 if metadata.children is None else metadata.children.nbytes)
