"""The names of the documents of a node, for each Zarr version, and how their JSON is read."""

from __future__ import annotations

from typing import Any

from zarrfs import bounds
from zarrfs.errors import MetadataError

V3_NODE = "zarr.json"
V2_ARRAY = ".zarray"
V2_GROUP = ".zgroup"
V2_ATTRIBUTES = ".zattrs"
V2_CONSOLIDATED = ".zmetadata"
V1_ARRAY = "meta"
V1_ATTRIBUTES = "attrs"

V2_DIMENSIONS = "_ARRAY_DIMENSIONS"
"""The attribute in which xarray and others store the names of axes in versions 1 and 2."""

DOCUMENTS: dict[int, tuple[str, ...]] = {
    3: (V3_NODE,),
    2: (V2_ARRAY, V2_GROUP, V2_ATTRIBUTES, V2_CONSOLIDATED),
    1: (V1_ARRAY, V1_ATTRIBUTES),
}
"""By version, newest first: if a directory has documents of several, the first is served."""

DOCUMENT_NAMES = frozenset(name for names in DOCUMENTS.values() for name in names)
"""Names of documents of any version."""


def load_json(data: bytes, document: str, largest: int = bounds.LARGEST_PARSED) -> Any:
    """The value of a document.

    largest : the most bytes that the value may take in memory.

    Raises MetadataError naming ``document``.
    """
    try:
        return bounds.load_json(data, largest)
    except bounds.OutOfBoundsError as error:
        raise MetadataError(document, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise MetadataError(document, f"is not JSON: {bounds.why_not_json(data, error)}") from error
