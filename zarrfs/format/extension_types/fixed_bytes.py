"""Types of a fixed number of bytes or characters.

zarr-extensions registers ``fixed_length_utf32``. ``null_terminated_bytes`` and ``raw_bytes`` are
zarr-python's, for numpy's ``S`` and ``V``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.bounds import check_element
from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.fill_value import parse_padded_bytes, parse_raw, parse_utf32

# numpy's limit for the size of an element; zarrfs's lower limit has an error of its own.
_LONGEST = 2**31 - 1


def fixed_bytes(name: str, configuration: Mapping[str, Any]) -> DataType:
    """A type whose configuration has only ``length_bytes``."""
    length = configuration.get("length_bytes")
    if set(configuration) != {"length_bytes"}:
        raise ValueError(f"{name} takes length_bytes and nothing else")
    if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= _LONGEST:
        raise ValueError(f"{name}: length_bytes is {length!r}")
    check_element(length)
    if name == "fixed_length_utf32":
        if length % 4:
            raise ValueError(f"{name}: length_bytes is {length}, no multiple of 4")
        return DataType(name, np.dtype(f"<U{length // 4}"), parse_utf32)
    if name == "raw_bytes":
        return DataType(name, np.dtype(f"V{length}"), parse_raw, has_byte_order=False)
    return DataType(name, np.dtype(f"S{length}"), parse_padded_bytes, has_byte_order=False)
