"""Chunk key encodings as users type them: ``default``, ``v2``, ``/``, ``default.``, ``v2/``."""

from __future__ import annotations

import json
from typing import Any

from zarrfs import bounds
from zarrfs.format.chunk_key import parse_chunk_keys

_NAMES = ("default", "v2")
_SEPARATORS = ("/", ".")


def read_chunk_keys(text: str, zarr_format: int) -> Any:
    """The encoding as in v3 metadata; a separator alone means the default keys of the version.

    Raises ValueError.
    """
    if text[:1] == "{":
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValueError(
                f"chunk key encoding is not JSON: {bounds.why_not_json(text, error)}"
            ) from error
        parse_chunk_keys(value)
        return value
    name, separator = (text[:-1], text[-1]) if text[-1:] in _SEPARATORS else (text, "")
    name = name or ("v2" if zarr_format == 2 else "default")
    if name not in _NAMES:
        parse_chunk_keys(name)  # raises for an unknown name, or one that needs arguments
        return {"name": name}
    default = "/" if name == "default" else "."
    return {"name": name, "configuration": {"separator": separator or default}}
