"""Reads JSON documents in the forms that Zarr's writers produce."""

from __future__ import annotations

from typing import Any

from zarrfs import bounds
from zarrfs.errors import MetadataError


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
