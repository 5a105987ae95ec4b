"""JSON documents as Zarr's writers made them."""

from __future__ import annotations

import json
from typing import Any

from zarrfs.errors import MetadataError


def load_json(data: bytes, document: str) -> Any:
    """Raises MetadataError naming ``document``."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MetadataError(document, f"is not JSON: {error}") from error
