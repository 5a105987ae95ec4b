"""User attributes and coordinates for formats with typed attributes (netCDF, HDF5)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.text import number

_MOST = 256
_LONGEST = 8192
_LARGEST_TOTAL = 48 << 10
_LONGEST_AXIS = 1 << 14
# Names with a meaning of their own in netCDF and HDF5.
_RESERVED = frozenset(
    (
        *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_ARRAY_DIMENSIONS"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
        *("dimension_units", "_FillValue", "_CRS"),
    )
)


class TypedAttribute(NamedTuple):
    """``value`` is text, or numbers: of 8 bytes, or of the array's own type."""

    name: str
    value: str | NDArray[Any]


def typed_attributes(
    attributes: Mapping[str, Any], array: Described | None = None
) -> list[TypedAttribute]:
    """The attributes that fit, in their order; larger ones are left out.

    array : the array with these attributes; None: they are those of a group.
    """
    found: list[TypedAttribute] = []
    room = _LARGEST_TOTAL
    for name, value in attributes.items():
        if len(found) == _MOST:
            break
        typed: str | NDArray[Any] | None = None
        if name == "_FillValue":
            typed = None if array is None else _fill_value(array, value)
        elif _is_name(name) and name not in _RESERVED:
            typed = _typed(value)
        if typed is None:
            continue
        size = len(name) * 4 + (len(typed) * 4 if isinstance(typed, str) else typed.nbytes)
        if size <= min(room, _LONGEST):
            room -= size
            found.append(TypedAttribute(name, typed))
    return found


def dimension_names(axes: tuple[Axis, ...], taken: str) -> list[str]:
    """A unique name for each axis that netCDF accepts."""
    names: list[str] = []
    for i, axis in enumerate(axes):
        name = axis.name.replace("/", "_").strip() or f"dim_{i}"
        if name in names or (name == taken and len(axes) > 1):
            name = f"{name}_{i}"
        names.append(name)
    return names


def coordinates(axis: Axis) -> NDArray[np.float64] | None:
    """The coordinates along an axis; None if they are unknown, or too many."""
    if axis.spacing is None or not axis.name or axis.length > _LONGEST_AXIS:
        return None
    return axis.origin + axis.spacing * np.arange(axis.length, dtype=np.float64)


def _is_name(name: str) -> bool:
    return bool(name) and name.isprintable() and "/" not in name and len(name) <= 128


def _typed(value: Any) -> str | NDArray[Any] | None:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return np.array(int(value), "i8")
    if isinstance(value, int | float):
        return _numbers([value], scalar=True)
    if isinstance(value, list | tuple):
        if 0 < len(value) <= _LONGEST // 8 and all(
            isinstance(item, int | float) and not isinstance(item, bool) for item in value
        ):
            return _numbers(list(value), scalar=False)
        # Do not convert a value that would not fit.
        if len(value) > _LONGEST // 2:
            return None
    if value is None:
        return None
    try:
        return _text(json.dumps(value, ensure_ascii=False, default=dict))
    except (TypeError, ValueError, RecursionError):
        return None


def _text(value: str) -> str | None:
    if not value or len(value) > _LONGEST or "\0" in value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _numbers(values: list[int | float], *, scalar: bool) -> NDArray[Any] | None:
    try:
        whole = all(isinstance(value, int) for value in values)
        found = np.array(values, "i8" if whole else "f8")
    except OverflowError:
        return None
    return found.reshape(()) if scalar else found


def _fill_value(array: Described, value: Any) -> NDArray[Any] | None:
    """The fill value in netCDF's form, of the array's type; xarray has base64 or a number."""
    dtype = array.data_type.dtype
    if not array.code or dtype.kind not in "iuf":
        return None
    if isinstance(value, str):
        named = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(value)
        if named is not None and dtype.kind == "f":
            return np.array(named, dtype)
        try:
            data = base64.b64decode(value[:64], validate=True)
        except (binascii.Error, ValueError):
            return None
        wide = np.dtype("<f8") if dtype.kind == "f" else np.dtype("<i8")
        for kind in (dtype, wide):
            if len(data) == kind.itemsize:
                return _cast(np.frombuffer(data, kind)[0].item(), dtype)
        return None
    told = number(value)
    return None if told is None else _cast(value, dtype)


def _cast(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    try:
        with np.errstate(all="ignore"):
            found = np.array(value).astype(dtype)
    except (OverflowError, ValueError):
        return None
    same = found == value or (value != value and found != found)  # noqa: PLR0124 - NaN
    return found if dtype.kind == "f" or bool(same) else None
