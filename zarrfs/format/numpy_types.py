"""The data type of a numpy dtype, by the type names of Zarr v2 and numcodecs."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.extension_types.struct import struct_of, subarray_of
from zarrfs.format.registry import find_data_type

_CORE = {data_type.dtype: data_type for data_type in CORE_DATA_TYPES.values()}


def data_type_of(dtype: np.dtype[Any]) -> DataType:
    """Raises ValueError for types without a counterpart: objects, long doubles."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return subarray_of(data_type_of(base), shape)
    if dtype.names is not None:
        return struct_of([(name, data_type_of(dtype[name])) for name in dtype.names], "struct")
    if (core := _CORE.get(dtype.newbyteorder("<"))) is not None:
        return core
    found = None
    match dtype.kind:
        case "M" | "m":
            unit, scale = np.datetime_data(dtype)
            name = "numpy.datetime64" if dtype.kind == "M" else "numpy.timedelta64"
            found = find_data_type(name, {"unit": unit, "scale_factor": scale})
        case "U":
            found = find_data_type("fixed_length_utf32", {"length_bytes": dtype.itemsize})
        case "S":
            found = find_data_type("null_terminated_bytes", {"length_bytes": dtype.itemsize})
        case "V":
            found = find_data_type("raw_bytes", {"length_bytes": dtype.itemsize})
    if found is None:
        raise ValueError(f"dtype {dtype} is not served")
    return found
