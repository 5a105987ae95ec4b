"""``numpy.datetime64`` and ``numpy.timedelta64``.

https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/numpy.datetime64
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.fill_value import parse_time

_UNITS = (
    "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic",
)  # fmt: skip


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
