"""The data type of a numpy dtype, and its name in metadata."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.extension_types.struct import OLD_STRUCT, struct_of, subarray_of
from zarrfs.format.registry import parse_data_type

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
    match dtype.kind:
        case "M" | "m" | "U" | "S" if dtype.itemsize:
            return parse_data_type(data_type_json(dtype))
        case "V" if dtype.itemsize:
            return parse_data_type(_sized("raw_bytes", dtype.itemsize))
    raise ValueError(f"dtype {dtype} is not served")


def data_type_json(dtype: np.dtype[Any]) -> Any:
    """The data type of ``dtype`` as in v3 metadata, whatever its byte order.

    Structs have their older name: zarr-python 3.1 reads no other, and newer ones read both.

    Raises ValueError for types without a counterpart.
    """
    if dtype.names is not None:
        fields = [[name, data_type_json(dtype[name])] for name in dtype.names]
        return {"name": OLD_STRUCT, "configuration": {"fields": fields}}
    match dtype.kind:
        case "M" | "m":
            unit, scale = np.datetime_data(dtype)
            name = "numpy.datetime64" if dtype.kind == "M" else "numpy.timedelta64"
            return {"name": name, "configuration": {"unit": unit, "scale_factor": scale}}
        case "U" if dtype.itemsize:
            return _sized("fixed_length_utf32", dtype.itemsize)
        case "S" if dtype.itemsize:
            return _sized("null_terminated_bytes", dtype.itemsize)
        case "V" if dtype.itemsize and dtype.subdtype is None:
            return f"r{8 * dtype.itemsize}"
    if dtype.kind in "biufc" and dtype.name in CORE_DATA_TYPES:
        return dtype.name
    raise ValueError(f"elements of {dtype} have no data type in Zarr")


def _sized(name: str, size: int) -> Any:
    return {"name": name, "configuration": {"length_bytes": size}}
