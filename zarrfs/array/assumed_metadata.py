"""Metadata from a file in place of the metadata of the source."""

from __future__ import annotations

from collections.abc import Mapping

from zarrfs.array.node_readers import LARGEST_DOCUMENT
from zarrfs.errors import MetadataError, StoreError, UsageError
from zarrfs.format.metadata.documents import DOCUMENTS, V2_ARRAY, V2_ATTRIBUTES, V3_NODE, load_json
from zarrfs.store.base import Blob, Store
from zarrfs.store.wrappers.assumed import AssumedStore, assumed


def assume_metadata(store: Store, path: str) -> Store:
    """A view of ``store`` in which the document in the file ``path`` is that of the root.

    path : of a ``zarr.json`` or a ``.zarray``, under any file name. For a ``.zarray`` the
        attributes of the source apply.

    Raises UsageError if the file cannot be read, MetadataError if it is neither document.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_DOCUMENT + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if len(data) > LARGEST_DOCUMENT:
        raise MetadataError(path, f"has more than {LARGEST_DOCUMENT} bytes")
    document = load_json(data, path)
    zarr_format = document.get("zarr_format") if isinstance(document, Mapping) else None
    if zarr_format not in (2, 3):
        raise MetadataError(
            path, "is neither a zarr.json nor a .zarray (zarr_format is not 2 or 3)"
        )
    objects: dict[str, Blob | StoreError | None] = dict.fromkeys(
        name for names in DOCUMENTS.values() for name in names
    )
    if zarr_format == 2:
        del objects[V2_ATTRIBUTES]
    objects[V3_NODE if zarr_format == 3 else V2_ARRAY] = assumed(data)
    return AssumedStore(store, objects)
