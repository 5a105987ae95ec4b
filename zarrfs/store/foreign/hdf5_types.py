"""Element types, fill values and attributes of HDF5 in the words of Zarr v3."""

from __future__ import annotations

import base64
from importlib import import_module
from typing import Any

import numpy as np

from zarrfs.store.foreign.found import with_types

Dtype = np.dtype[Any]

_HIDDEN = frozenset(
    {
        *("REFERENCE_LIST", "CLASS", "DIMENSION_LIST", "NAME", "_Netcdf4Dimid"),
        *("_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    }
)
_MOST_LISTED = 1 << 16


class NotServedError(ValueError):
    """The reason why a dataset or link of a file is not served."""


def decoded(name: str | bytes) -> str:
    """A name; h5py gives those that are not UTF-8 as bytes."""
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


def is_text(dtype: Dtype) -> bool:
    """Whether elements are strings of variable length. Raises NotServedError for other objects."""
    if dtype.kind != "O":
        return False
    h5py = import_module("h5py")
    if h5py.check_string_dtype(dtype) is not None:
        return True
    if h5py.check_ref_dtype(dtype) is not None:
        raise NotServedError("its elements are references into the file, which Zarr does not have")
    raise NotServedError("its elements are sequences, which Zarr does not have")


def packed(dtype: Dtype) -> Dtype:
    """The same type, little-endian and without gaps."""
    if dtype.names is not None:
        assert dtype.fields is not None
        return np.dtype([(name, packed(dtype.fields[name][0])) for name in dtype.names])
    # Without the metadata that h5py adds.
    return np.dtype(dtype.newbyteorder("<").str)


def data_type(dtype: Dtype) -> Any:
    """The Zarr data type of elements of a fixed size. Raises NotServedError."""
    if dtype.names is not None:
        assert dtype.fields is not None
        # The older name of structs, which all versions of zarr-python know.
        fields = [[name, data_type(dtype.fields[name][0])] for name in dtype.names]
        return {"name": "structured", "configuration": {"fields": fields}}
    if dtype.subdtype is not None:
        raise NotServedError("a field of its elements is an array, which Zarr v3 does not have")
    kind, size = dtype.kind, dtype.itemsize
    if kind == "O":
        raise NotServedError("a field of its elements has no fixed size")
    if not size:
        raise NotServedError("its elements have no bytes")
    if kind in "SV":
        name = "null_terminated_bytes" if kind == "S" else "raw_bytes"
        return {"name": name, "configuration": {"length_bytes": size}}
    if kind in "mM":
        unit, scale = np.datetime_data(dtype)
        name = "numpy.datetime64" if kind == "M" else "numpy.timedelta64"
        return {"name": name, "configuration": {"unit": unit, "scale_factor": scale}}
    if kind not in "biufc" or size > (16 if kind == "c" else 8):
        raise NotServedError(f"its elements are {dtype.name}, which Zarr does not have")
    return dtype.name


def fill_value(element: np.ndarray[Any, Any]) -> Any:
    """The fill value in JSON, with its exact bits, of an array without axes."""
    dtype = packed(element.dtype)
    raw = element.astype(dtype).tobytes()
    if dtype.kind == "b":
        return bool(raw[0])
    if dtype.kind in "iu":
        return int(np.frombuffer(raw, dtype)[0])
    if dtype.kind in "mM":
        return int(np.frombuffer(raw, "<i8")[0])
    if dtype.kind == "f":
        return "0x" + raw[::-1].hex()
    if dtype.kind == "c":
        half = len(raw) // 2
        return ["0x" + part[::-1].hex() for part in (raw[:half], raw[half:])]
    return base64.b64encode(raw).decode()


def attributes(thing: Any) -> dict[str, Any]:
    """The attributes of a group or dataset that JSON can hold."""
    found: dict[str, Any] = {}
    dtypes: dict[str, Any] = {}
    for name in thing.attrs:
        if name in _HIDDEN:
            continue
        try:
            value = _plain(stored := thing.attrs[name])
            dtypes[decoded(name)] = getattr(stored, "dtype", None)
        except (OSError, RuntimeError, TypeError, ValueError, KeyError):
            value = "(this attribute has a type that cannot be read)"
        found[decoded(name)] = value
    return with_types(found, dtypes)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.size > _MOST_LISTED:
            return f"({value.size} values)"
        if value.dtype.kind == "S":
            value = np.char.decode(np.asarray(value, "S"), "utf-8", "replace")
        if value.size == 1 and value.dtype.names is None:
            one = value.item()
            return str(one) if isinstance(one, np.generic) else _plain(one)
        if value.dtype.kind in "biufUO" and value.dtype.names is None:
            return _plain(value.tolist())
        return str(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if type(value).__name__ == "Empty":
        return ""
    return str(value)
