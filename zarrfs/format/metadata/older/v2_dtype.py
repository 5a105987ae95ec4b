"""The ``dtype`` and ``fill_value`` of a ``.zarray`` or a v1 ``meta``.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html, sections "Data type encoding"
and "Fill value encoding".
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from zarrfs import bounds
from zarrfs.format.data_type import DataType, from_big_words
from zarrfs.format.data_types.fill_value import from_base64
from zarrfs.format.metadata.lenient import plain_fill

_TYPE = re.compile(r"[<>|=]?[?biufcmMSUVO]\d*(\[\d*[A-Za-zμ]+\])?", re.ASCII)


def numpy_dtype(value: Any) -> np.dtype[Any]:
    """The dtype of stored elements. Raises ValueError."""
    try:
        return _dtype(value)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{bounds.shown(repr(value))} is not a dtype: {error}") from error


def _dtype(value: Any) -> np.dtype[Any]:
    if isinstance(value, str):
        # numpy accepts much more than the specification allows, also names of Python types.
        if not _TYPE.fullmatch(value):
            raise ValueError(f"{value!r} is not a dtype")
        return np.dtype(value)
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"{value!r} is not a dtype")
    bounds.check_count(len(value), bounds.MOST_FIELDS, "fields")
    fields: list[Any] = []
    for field in value:
        match field:
            case [str(name), data_type]:
                fields.append((name, _dtype(data_type)))
            case [str(name), data_type, [*lengths]]:
                bounds.check_count(len(lengths), bounds.MOST_AXES, "axes of a field")
                if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in lengths):
                    raise ValueError(f"{lengths!r} is not a shape of a field")
                fields.append((name, _dtype(data_type), tuple(lengths)))
            case _:
                raise ValueError(f"{field!r} is not a field of a dtype")
    return np.dtype(fields)


def fill_bytes(value: Any, data_type: DataType, stored: np.dtype[Any]) -> bytes:
    """The bytes of the fill value, in memory. Raises ValueError.

    ``null`` means zeros, or NaT for times, as in current readers. 0 means zeros for types without
    numbers, because zarr-python wrote it for them.
    """
    if not data_type.fixed_size:
        return data_type.fill_bytes(value)
    kind = stored.kind
    if kind in "biufS" and isinstance(value, list | tuple) and len(value) == 1:
        # netCDF-C 4.8.0 wrote its attribute, which is a list of one.
        value = value[0]
    if value is None and kind in "mM":
        value = "NaT"
    if value is None or (kind in "SUV" and _is_zero(value)):
        return bytes(data_type.item_size)
    if kind in "biuf" or (kind == "c" and isinstance(value, list | tuple)):
        value = plain_fill(value, kind)
    elif kind in "mM" and isinstance(value, str) and value != "NaT":
        return np.array(value, data_type.dtype).tobytes()
    elif kind == "S" and isinstance(value, str):
        return _text_or_base64(value).ljust(data_type.item_size, b"\0")
    elif kind in "Vc" and isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return _stored_bytes(value, data_type, stored)
    return data_type.fill_bytes(value)


def _is_zero(value: Any) -> bool:
    return value == "" or (value == 0 and isinstance(value, int | float))


def _text_or_base64(value: str) -> bytes:
    try:
        return from_base64(value)
    except ValueError:
        # The value can only be the text itself.
        return value.encode()


def _stored_bytes(value: str, data_type: DataType, stored: np.dtype[Any]) -> bytes:
    """Decode base64 of one element in its stored form."""
    raw = from_base64(value)
    if len(raw) != stored.itemsize:
        raise ValueError(f"has {len(raw)} bytes, {stored} has {stored.itemsize}")
    if stored == data_type.dtype:
        return raw
    return from_big_words(np.frombuffer(raw, stored), data_type).tobytes()
