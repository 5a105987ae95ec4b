"""Configurations of numcodecs' filters: their types, and what they raise.

https://numcodecs.readthedocs.io/en/stable/filter/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numcodecs
import numpy as np

FAILURES = (ValueError, TypeError, RuntimeError, IndexError, OverflowError, ZeroDivisionError)
"""What numcodecs raises on data or parameters that it cannot use."""

Members = Mapping[str, Any]


def configured(members: Members) -> Any:
    """The codec. Raises ValueError for parameters that it does not take."""
    try:
        return numcodecs.get_codec(dict(members))
    except FAILURES as error:
        raise ValueError(f"{members['id']}: {error}") from error


def type_parameters(codec_id: str) -> tuple[str, str]:
    """Which parameters name the type of the decoded and of the encoded elements."""
    return ("decode_dtype", "encode_dtype") if codec_id == "astype" else ("dtype", "astype")


def encoded_types(members: Members) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The types of what a filter decodes to and of what it encodes to. Raises ValueError."""
    if members["id"] in ("packbits", "base64"):
        return np.dtype("u1"), np.dtype("u1")
    decoded_name, encoded_name = type_parameters(members["id"])
    try:
        source = np.dtype(members.get(decoded_name))
        default = np.dtype("u1") if members["id"] == "categorize" else source
        target = np.dtype(members.get(encoded_name) or default)
    except TypeError as error:
        raise ValueError(f"{members['id']}: {error}") from error
    if source.hasobject or target.hasobject or not source.itemsize or not target.itemsize:
        raise ValueError(f"{members['id']}: {source} and {target} are no types for it")
    return source, target
