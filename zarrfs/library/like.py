"""Shape and data type of an array in another format, or of another Zarr array."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.errors import UsageError
from zarrfs.format.chunk_grid import Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.headers.envi import MAGIC as ENVI
from zarrfs.library.headers.envi import header_beside, read_envi
from zarrfs.library.headers.header import Header, HeaderError, read_start
from zarrfs.library.headers.metaimage import read_metaimage
from zarrfs.library.headers.npy import MAGIC as NPY
from zarrfs.library.headers.npy import read_npy
from zarrfs.library.headers.nrrd import MAGIC as NRRD
from zarrfs.library.headers.nrrd import read_nrrd
from zarrfs.library.headers.tiff import MAGICS as TIFFS
from zarrfs.library.headers.tiff import read_tiff
from zarrfs.store.open import StoreConfig, open_store


def like(path: str, storage_options: Mapping[str, object]) -> tuple[Shape, Any]:
    """Shape, and data type as v3 metadata has it.

    path : of a file (``.npy``, NRRD, MetaImage, ENVI header or data, TIFF; what it is its
        contents tell), or of a Zarr array, for which ``storage_options`` are.

    Raises UsageError where that is none of them, and ZarrfsError.
    """
    if not os.path.isfile(path) or path.lower().endswith(".zip"):
        return _zarr(path, storage_options)
    try:
        header = _header(path)
    except HeaderError as error:
        raise UsageError(f"{path}: {error}") from error
    return header.shape, header.data_type


def _header(path: str) -> Header:
    start = read_start(path, 64)
    if start.startswith(NPY):
        return read_npy(path)
    if start.startswith(NRRD):
        return read_nrrd(path)
    if start.startswith(TIFFS):
        return read_tiff(path)
    if start.startswith(ENVI):
        return read_envi(path)
    if path.lower().endswith((".mhd", ".mha")):
        return read_metaimage(path)
    if (beside := header_beside(path)) is not None and read_start(beside, 4) == ENVI:
        return read_envi(beside)
    raise HeaderError("is no NPY, NRRD, MetaImage, ENVI or TIFF file")


def _zarr(path: str, storage_options: Mapping[str, object]) -> tuple[Shape, Any]:
    store = open_store(path, StoreConfig(storage_options=storage_options))
    try:
        node = Hierarchy(store).root()
    finally:
        store.close()
    if not isinstance(node.metadata, ArrayMetadata):
        raise UsageError(f"{path}: {node.problem or 'is a group, not an array'}")
    summary = node.metadata.summary
    if "dtype" not in summary:
        return node.metadata.shape, summary["data_type"]
    from zarrfs.format.making.array_template import template  # noqa: PLC0415

    # Of older versions: the names of their types and their codecs for objects.
    chain = [
        {"id": codec["name"].removeprefix("numcodecs."), **codec["configuration"]}
        for codec in summary["codecs"]
    ]
    document = {"zarr_format": 2, "dtype": summary["dtype"], "filters": chain}
    return node.metadata.shape, template(document, path).data_type
