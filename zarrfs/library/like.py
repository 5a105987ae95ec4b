"""The form of a new array like one in another format, or like another Zarr array."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.create import stored_template
from zarrfs.errors import UsageError
from zarrfs.format.making.array_template import template
from zarrfs.format.making.new_array import NewArray
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.headers.header import HeaderError, read_header
from zarrfs.store.open import StoreConfig, open_store


def like(path: str, storage_options: Mapping[str, object]) -> NewArray:
    """The form of a new array like another one.

    path : of a file (``.npy``, NRRD, MetaImage, ENVI header or data, TIFF; what it is its
        contents tell), of which shape and data type are taken; or of a Zarr array, of which all
        metadata are taken, and for which ``storage_options`` are.

    Raises UsageError where that is none of them, and ZarrfsError.
    """
    if not os.path.isfile(path) or path.lower().endswith(".zip"):
        return _zarr(path, storage_options)
    try:
        header = read_header(path)
    except HeaderError as error:
        raise UsageError(f"{path}: {error}") from error
    return NewArray(header.shape, header.data_type)


def _zarr(path: str, storage_options: Mapping[str, object]) -> NewArray:
    with closing(open_store(path, StoreConfig(storage_options))) as store:
        node = Hierarchy(store).root()
        if not isinstance(node.metadata, ArrayMetadata):
            raise UsageError(f"{path}: {node.problem or 'is a group, not an array'}")
        if node.metadata.zarr_format != 1:
            return stored_template(store, node)
    # zarrfs creates no array of version 1; its type names are those of version 2.
    return replace(
        template({"zarr_format": 2, "dtype": node.metadata.summary["dtype"]}, path),
        shape=node.metadata.shape,
        zarr_format=None,
    )


# Members that make no sense for another rank, data type or version of Zarr.
_OF_RANK = (
    *("chunks", "shards", "chunk_grid", "codecs", "order"),
    *("dimension_names", "dimension_units"),
)
_OF_TYPE = ("fill_value", "endian")
_OF_VERSION = ("zarr_format", "shards", "chunk_grid", "codecs", "key_encoding", "others")


def fitting(base: NewArray, *, rank: int, data_type: Any, zarr_format: int) -> NewArray:
    """``base`` without what makes no sense for another rank, data type or version of Zarr."""
    dropped: set[str] = set()
    if base.shape is not None and rank != len(base.shape):
        dropped.update(_OF_RANK)
    if data_type != base.data_type:
        dropped.update(_OF_TYPE)
    if zarr_format != (base.zarr_format or zarr_format):
        dropped.update(_OF_VERSION)
    unset = NewArray()
    return replace(base, **{name: getattr(unset, name) for name in dropped})
