"""Finds all problems of a metadata document, while reading it stops at the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.errors import MetadataError
from zarrfs.format.metadata import strict
from zarrfs.format.metadata.v3 import parse_node


def v3_problems(value: Any, document: str) -> list[str]:
    """Why a parsed ``zarr.json`` cannot be served; empty if it can be served."""
    try:
        parse_node(value, document)
    except MetadataError as error:
        return strict.texts(error.__cause__) or [error.reason]
    return []


def v3_deviations(value: Any) -> list[str]:
    """Where a ``zarr.json`` that is served deviates from the specification."""
    return strict.deviations(value) if isinstance(value, Mapping) else []
