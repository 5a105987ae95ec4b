"""Facts about the elements of an array in the words of CF.

- Times of numpy are numbers with a unit:
  https://cfconventions.org/cf-conventions/cf-conventions.html#time-coordinate
- NWB has a factor, an offset and a unit of series of values:
  https://nwb-schema.readthedocs.io/en/latest/format.html#timeseries
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.facts.text import number

_NUMBERS = CORE_DATA_TYPES["int64"]
_NOT_A_TIME = -(2**63)
_NO_UNITS = ("n.a.", "unknown")
"""NWB's words for none."""
# CF's years and months have a fixed length, those of numpy do not.
_UNITS = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds",
    "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
}  # fmt: skip


def of_times(dtype: np.dtype[Any]) -> Mapping[str, str]:
    """The attributes of counts of a time; empty for other types, and for times without a unit.

    Those of a difference are xarray's, which has them in units of ``s``, ``ms``, ``us`` and ``ns``.
    """
    if dtype.kind not in "mM":
        return {}
    name, step = np.datetime_data(dtype)
    unit = _UNITS.get(name)
    if unit is None or step != 1:
        return {}
    if dtype.kind == "m":
        return {"units": unit, **({"dtype": f"timedelta64[{name}]"} if "s" in name else {})}
    return {"units": f"{unit} since 1970-01-01", "calendar": "proleptic_gregorian"}


def _of_nwb(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of the elements of a series, all of which have these three."""
    factor, offset = number(attributes.get("conversion")), number(attributes.get("offset", 0))
    unit = attributes.get("unit")
    if factor is None or offset is None or "resolution" not in attributes or unit is None:
        return {}
    said = {} if unit in _NO_UNITS else {"units": unit}
    if (factor, offset) != (1, 0):
        said |= {"scale_factor": factor, "add_offset": offset}
    return said


def as_cf(metadata: ArrayMetadata) -> ArrayMetadata:
    """The same array with CF's attributes; one of times as one of the numbers with these bytes.

    An array of times without a unit of CF stays one of times.
    """
    said = of_times(metadata.layout.data_type.dtype)
    if not said:
        said = _of_nwb(metadata.attributes)
        return metadata._replace(attributes={**said, **metadata.attributes}) if said else metadata
    return metadata._replace(
        layout=metadata.layout._replace(data_type=_NUMBERS),
        attributes={**metadata.attributes, **said, "_FillValue": _NOT_A_TIME},
    )
