"""Reads JSON documents in the forms that Zarr's writers produce."""

from __future__ import annotations

import json
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
        raise MetadataError(document, f"is not JSON: {_reason(data, error)}") from error


def _reason(data: bytes, error: ValueError | RecursionError) -> str:
    if not data.strip():
        return "it is empty"
    if isinstance(error, json.JSONDecodeError):
        return f"its text ends or is wrong in line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not {error.encoding.upper()}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
