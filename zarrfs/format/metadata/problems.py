"""All that is wrong with a metadata document, where reading it stops at the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarr_metadata import MetadataValidationError
from zarr_metadata.model import ZarrV3ArrayMetadata, ZarrV3GroupMetadata

from zarrfs.errors import MetadataError
from zarrfs.format.metadata.v3 import parse_node


def v3_problems(value: Any, document: str) -> list[str]:
    """Why a parsed ``zarr.json`` cannot be served; empty if it can."""
    try:
        parse_node(value, document)
    except MetadataError as error:
        if isinstance(error.__cause__, MetadataValidationError):
            return _texts(error.__cause__)
        return [error.reason]
    return []


def v3_deviations(value: Any) -> list[str]:
    """Where a ``zarr.json`` that is served departs from the specification."""
    if not isinstance(value, Mapping):
        return []
    model = ZarrV3GroupMetadata if value.get("node_type") == "group" else ZarrV3ArrayMetadata
    try:
        # Attributes are the user's, and may be anything.
        model.from_json({**value, "attributes": {}})
    except MetadataValidationError as error:
        return _texts(error)
    return []


def _texts(error: MetadataValidationError) -> list[str]:
    texts = []
    for problem in error.problems:
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem.loc)
        texts.append(f"{where.lstrip('.')}: {problem.message}" if where else problem.message)
    return texts
