"""numpy's types of a fixed size: of so many bytes or characters, and times.

https://github.com/zarr-developers/zarr-extensions/tree/main/data-types

``null_terminated_bytes`` and ``raw_bytes`` are zarr-python's, for numpy's ``S`` and ``V``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.bounds import check_element
from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.fill_value import (
    parse_padded_bytes,
    parse_raw,
    parse_time,
    parse_utf32,
)

# numpy's limit for the size of an element; zarrfs's lower limit has an error of its own.
_LONGEST = 2**31 - 1
_UNITS = (
    "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic",
)  # fmt: skip


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


def time(name: str, configuration: Mapping[str, Any]) -> DataType:
    """Signed 64-bit counts of ``scale_factor`` times ``unit``; the lowest value is NaT."""
    unit, scale = configuration.get("unit"), configuration.get("scale_factor", 1)
    if set(configuration) - {"unit", "scale_factor"}:
        raise ValueError(f"{name} takes only unit and scale_factor")
    if unit not in _UNITS:
        raise ValueError(f"{name}: unit is {unit!r}")
    if isinstance(scale, bool) or not isinstance(scale, int) or not 1 <= scale < 2**31:
        raise ValueError(f"{name}: scale_factor is {scale!r}")
    letter = "M" if name == "numpy.datetime64" else "m"
    if unit == "generic":
        return DataType(name, np.dtype(f"<{letter}8"), parse_time)
    return DataType(name, np.dtype(f"<{letter}8[{scale}{unit.replace('μ', 'u')}]"), parse_time)
