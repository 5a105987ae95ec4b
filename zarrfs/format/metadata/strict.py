"""Compares ``zarr.json`` with the Zarr developers' own model of the specification.

Importing the package `zarr_metadata` takes twice as long as importing numpy. So it reads only the
documents that zarrfs refuses, for errors that name the place, and those that a check looks at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarr_metadata import MetadataValidationError
from zarr_metadata.model import ZarrV3ArrayMetadata, ZarrV3GroupMetadata

from zarrfs.bounds import shown


def deviations(value: Any) -> list[str]:
    """Where a document deviates from the specification, whether it is served or not."""
    if not isinstance(value, Mapping):
        return []
    model = ZarrV3GroupMetadata if value.get("node_type") == "group" else ZarrV3ArrayMetadata
    try:
        # Attributes belong to the user, and may have any value.
        model.from_json({**value, "attributes": {}})
    except MetadataValidationError as error:
        return [_text(problem.loc, problem.message) for problem in error.problems]
    return []


def _text(place: tuple[Any, ...], message: str) -> str:
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return f"{where.lstrip('.')}: {shown(message)}" if where else shown(message)
