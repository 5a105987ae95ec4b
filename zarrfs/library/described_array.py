"""The metadata of an open array, as properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.metadata.node import ArrayMetadata


class DescribedArray:
    """An array with metadata. No property blocks."""

    @property
    def metadata(self) -> ArrayMetadata:
        """All that the metadata documents say, whatever their version."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        return self.metadata.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.metadata.elements

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, decoded."""
        return self.metadata.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy type of an element in memory: little-endian; `object` for strings and bytes."""
        return self.metadata.layout.data_type.dtype

    @property
    def data_type(self) -> str:
        """Name of the data type in Zarr's own words."""
        return self.metadata.layout.data_type.name

    @property
    def chunks(self) -> Shape:
        """Shape of the chunks that are decoded one by one: inner chunks, where there are shards.

        Where they are not all alike, the longest along each axis.
        """
        return self.metadata.layout.read.largest_chunk

    @property
    def shards(self) -> Shape | None:
        """Shape of the shards, each a stored object; None where nothing is sharded."""
        layout = self.metadata.layout
        return layout.stored.largest_chunk if layout.sharded else None

    @property
    def chunk_counts(self) -> Shape:
        """Number of chunks along each axis."""
        return self.metadata.layout.read.counts

    @property
    def fill_value(self) -> Any:
        """The element that a missing chunk is filled with, as a numpy scalar."""
        layout = self.metadata.layout
        return layout.data_type.element(layout.fill)[()]

    @property
    def dimension_names(self) -> tuple[str | None, ...]:
        """One for each axis, None where it has none; empty if no axis has one."""
        return self.metadata.dimension_names

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The user's attributes."""
        return self.metadata.attributes

    @property
    def codecs(self) -> list[Any]:
        """The codec pipeline as JSON, in the vocabulary of v3."""
        return list(self.metadata.summary["codecs"])
