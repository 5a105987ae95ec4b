"""Data types by their name in metadata, or in numpy's notation: ``uint16``, ``<f4``."""

from __future__ import annotations

import difflib
import json
from typing import Any

import numpy as np

from zarrfs import bounds
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.metadata.older.v2_dtype import numpy_dtype
from zarrfs.format.registry import DATA_TYPES, find_data_type, parse_data_type


def read_data_type(text: str) -> tuple[Any, str]:
    """The data type as in v3 metadata, and the byte order that the text requests.

    text : a name of v3 (``uint16``, ``bfloat16``, ``r24``, ``string``), numpy's form in v2
        metadata (``<u2``, ``>f4``, ``M8[ns]``, ``U10``), or JSON of either.

    Raises ValueError.
    """
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValueError(
                f"data type is not JSON: {bounds.why_not_json(text, error)}"
            ) from error
        if isinstance(value, dict):
            parse_data_type(value)
            return value, "little"
        return _of_numpy(numpy_dtype(value))
    if _known(text):
        return text, "little"
    try:
        dtype = numpy_dtype(text)
    except ValueError:
        near = difflib.get_close_matches(text, [*CORE_DATA_TYPES, *DATA_TYPES], n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"unknown data type {text!r}{hint}") from None
    return _of_numpy(dtype)


def data_type_names() -> list[str]:
    """The names that `read_data_type` accepts without a configuration, sorted."""
    return sorted(name for name in {*CORE_DATA_TYPES, *DATA_TYPES} if _known(name))


def _known(name: str) -> bool:
    try:
        return find_data_type(name) is not None
    except ValueError:
        # The type needs a configuration, which a name alone does not give.
        return False


def _of_numpy(dtype: np.dtype[Any]) -> tuple[Any, str]:
    stored = {dtype[name].byteorder for name in dtype.names or ()} | {dtype.byteorder}
    return data_type_json(dtype), "big" if ">" in stored else "little"


def data_type_json(dtype: np.dtype[Any]) -> Any:
    """The data type of ``dtype`` as in v3 metadata, whatever its byte order.

    Raises ValueError for types without a counterpart.
    """
    if dtype.names is not None:
        fields = [{"name": name, "data_type": data_type_json(dtype[name])} for name in dtype.names]
        return {"name": "struct", "configuration": {"fields": fields}}
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
