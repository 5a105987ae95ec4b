"""User attributes for formats with typed attributes (netCDF, HDF5)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.metadata.documents import V2_DIMENSIONS
from zarrfs.views.facts.missing import NAMED_FLOATS, OF_FLOATS, OF_THE_TYPE, typed
from zarrfs.views.facts.text import plain
from zarrfs.views.headers.described import Described

LEFT_OUT = "zarrfs_left_out"
"""The attribute that names what is left out of a file."""

TYPES = "zarrfs_types"
"""The attribute with the types of others; `zarrfs.store.foreign` makes it."""

_MOST = 1024
_LARGEST = 65_000
"""Bytes of one attribute: its message has less than 64 KiB."""
_LARGEST_TOTAL = 256 << 10
_LONGEST_LIST = 4000
_STATED = frozenset(
    ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
)
# Names with a meaning of their own in netCDF and HDF5.
_RESERVED = frozenset(
    (
        *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", V2_DIMENSIONS),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
        *("dimension_units", "_FillValue", "_CRS", LEFT_OUT, TYPES),
    )
)


class TypedAttribute(NamedTuple):
    """``value`` is text, texts, or numbers: of 8 bytes, of the array's own or a stated type."""

    name: str
    value: str | list[str] | NDArray[Any]


def typed_attributes(
    attributes: Mapping[str, Any], array: Described | None = None, left_out: Sequence[str] = ()
) -> list[TypedAttribute]:
    """The attributes that fit, in their order. One more names what is left out.

    array : the array with these attributes; None: they are those of a group.
    left_out : names of other things that are left out.
    """
    found: list[TypedAttribute] = []
    missing = [*left_out]
    room = _LARGEST_TOTAL
    types = _types(attributes.get(TYPES))
    if array is not None and array.no_data is not None:
        value = np.array(array.no_data).astype(array.numbers)
        found.append(TypedAttribute("_FillValue", value))
    for name, value in attributes.items():
        if name in _RESERVED or value is None:
            continue
        made = _made(name, value, array, types.get(name, "")) if _is_name(name) else None
        size = 0 if made is None else len(name.encode()) + _size(made)
        if made is None or size > min(room, _LARGEST) or len(found) >= _MOST:
            missing.append(name)
            continue
        room -= size
        found.append(TypedAttribute(name, made))
    if missing and (text := plain(", ".join(missing), _LONGEST_LIST)):
        found.append(TypedAttribute(LEFT_OUT, text))
    return found


def size_of(attributes: Sequence[TypedAttribute]) -> int:
    """Bytes of all values in the file."""
    return sum(_size(attribute.value) for attribute in attributes)


def _size(value: str | list[str] | NDArray[Any]) -> int:
    """Bytes in the file."""
    if isinstance(value, str):
        return len(value.encode()) + 1
    if isinstance(value, list):
        return len(value) * (max((len(text.encode()) for text in value), default=0) + 1)
    return value.nbytes


def _is_name(name: str) -> bool:
    return bool(name) and name.isprintable() and "/" not in name and len(name) <= 128


def _types(text: Any) -> Mapping[str, str]:
    """The types that lines of `TYPES` state, by name."""
    lines = text.splitlines() if isinstance(text, str) else ()
    found = (line.partition(" ") for line in lines)
    return {name: kind for kind, _, name in found if kind in _STATED}


def _made(
    name: str, value: Any, array: Described | None, kind: str
) -> str | list[str] | NDArray[Any] | None:
    """``kind`` : the type of its numbers; empty if unknown."""
    if kind and (found := _exactly(value, kind)) is not None:
        return found
    if array is not None and array.code[:1] in ("i", "u", "f"):
        if name in OF_THE_TYPE and (found := typed(value, array.numbers)) is not None:
            return found
        if name in OF_FLOATS and (found := typed(value, np.dtype("f8"))) is not None:
            return found
    return _typed(value)


def _exactly(value: Any, kind: str) -> NDArray[Any] | None:
    """The number or numbers in a type; None if it does not hold them, as after a later change."""
    parts = value if isinstance(value, list | tuple) else [value]
    if not 0 < len(parts) <= _LARGEST:
        return None
    if kind[0] == "f":
        # JSON has no such numbers, so Zarr writes their names.
        parts = [NAMED_FLOATS.get(part, part) if type(part) is str else part for part in parts]
    if not {type(part) for part in parts} <= {int, float}:
        return None
    try:
        with np.errstate(all="ignore"):
            found = np.array(parts, kind).reshape(np.shape(value))
    except (OverflowError, ValueError):
        return None
    same = (
        one == other or (math.isnan(one) and math.isnan(other))
        for one, other in zip(parts, found.ravel().tolist(), strict=True)
    )
    return found if all(same) else None


def _typed(value: Any) -> str | list[str] | NDArray[Any] | None:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return _numbers(value, [value])
    if isinstance(value, list | tuple):
        # Do not convert a value that would not fit.
        if len(value) > _LARGEST:
            return None
        if value and all(
            isinstance(item, int | float) and not isinstance(item, bool) for item in value
        ):
            return _numbers(value, value)
        if all(isinstance(item, str) for item in value):
            texts = [_text(item) for item in value]
            kept = [text for text in texts if text is not None]
            return kept if len(kept) == len(texts) else None
    try:
        return _text(json.dumps(value, ensure_ascii=False, default=dict))
    except (TypeError, ValueError, RecursionError):
        return None


def _text(value: str) -> str | None:
    if len(value) > _LARGEST or "\0" in value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _numbers(value: Any, parts: Sequence[int | float]) -> NDArray[Any] | None:
    """``parts`` : the numbers in ``value``, which may be one itself."""
    try:
        return np.array(value, "i8" if all(isinstance(part, int) for part in parts) else "f8")
    except OverflowError:
        return None
