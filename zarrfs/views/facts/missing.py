"""Missing values, valid range, and other attributes of CF in the type of their array.

JSON has lost the type of an attribute. The NetCDF User Guide says which attributes have the type of
the variable: https://docs.unidata.ucar.edu/nug/current/attribute_conventions.html
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.metadata.documents import V2_DIMENSIONS
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.facts.facts import Number
from zarrfs.views.facts.text import number

OF_THE_TYPE = frozenset(
    (
        *("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"),
        *("flag_values", "flag_masks", "actual_range"),
    )
)
"""Attributes whose numbers have the type of the variable."""

OF_FLOATS = frozenset(("scale_factor", "add_offset"))

_MOST = 1024
_HDMFS = "zarr_dtype"
"""The attribute of all arrays that hdmf-zarr writes."""
NAMED_FLOATS = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf, "nan": np.nan}


def missing_values(metadata: ArrayMetadata) -> tuple[Number, ...]:
    """The elements without a value, as xarray finds them.

    The attribute ``_FillValue`` says it. Without one, the fill value of Zarr v1 and v2 does, if the
    array is one `of_xarray`: OME-Zarr and AnnData mean numbers by them. The fill value of Zarr v3
    does not: it is only the value of chunks that are not stored. The attribute ``missing_value``
    names further ones.
    """
    if not is_real(metadata):
        return ()
    attributes = metadata.attributes
    found: list[Number] = []
    if "_FillValue" in attributes:
        found += _values(attributes["_FillValue"], metadata)
    elif metadata.zarr_format in (1, 2) and metadata.has_fill and of_xarray(metadata):
        fill = np.frombuffer(metadata.layout.fill, metadata.layout.data_type.dtype)
        found += as_meant(fill, metadata).tolist() if len(fill) == 1 else []
    if "missing_value" in attributes:
        found += _values(attributes["missing_value"], metadata)
    # NaN differs from itself, so that comparing would find it twice.
    return tuple({repr(value): value for value in found}.values())


def of_xarray(metadata: ArrayMetadata) -> bool:
    """Whether xarray wrote the array, as far as one can know.

    Its axes have names, or an attribute says it has no axes; and it is not one of HDMF (NWB), which
    names the axes of its arrays for xarray, and means numbers by zeros.
    """
    if _HDMFS in metadata.attributes:
        return False
    return bool(metadata.dimension_names) or V2_DIMENSIONS in metadata.attributes


def valid_range(
    metadata: ArrayMetadata,
) -> tuple[Number | None, Number | None] | None:
    """The least and the largest valid element; None where neither is known."""
    if not is_real(metadata):
        return None
    attributes = metadata.attributes
    both = _values(attributes.get("valid_range"), metadata)
    if len(both) == 2:
        return both[0], both[1]
    ends = [_values(attributes.get(name), metadata) for name in ("valid_min", "valid_max")]
    low, high = (end[0] if len(end) == 1 else None for end in ends)
    return None if low is None and high is None else (low, high)


def signedness(metadata: ArrayMetadata) -> bool | None:
    """Whether integers have a sign where ``_Unsigned`` says other than their type; else None."""
    kind, said = metadata.layout.data_type.dtype.kind, metadata.attributes.get("_Unsigned")
    if kind == "i" and said in ("true", True):
        return False
    return True if kind == "u" and said in ("false", False) else None


def as_meant(values: NDArray[Any], metadata: ArrayMetadata) -> NDArray[Any]:
    """The elements of an array with the signs that they mean."""
    signed = signedness(metadata)
    return values if signed is None else values.view(f"{'ui'[signed]}{values.dtype.itemsize}")


def is_real(metadata: ArrayMetadata) -> bool:
    """Whether elements are real numbers of numpy."""
    data_type = metadata.layout.data_type
    dtype = data_type.dtype
    plain = data_type.fixed_size and data_type.bits is None and dtype.isbuiltin == 1
    return plain and dtype.kind in "iuf"


def typed(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """The number or numbers of an attribute in a type; None where the type cannot hold them.

    xarray writes numbers, the names of floats, or base64 of the bytes of a number.
    """
    if isinstance(value, list | tuple):
        if not 0 < len(value) <= _MOST:
            return None
        parts = [_typed(item, dtype) for item in value]
        kept = [part for part in parts if part is not None]
        return np.array(kept, dtype) if len(kept) == len(parts) else None
    return _typed(value, dtype)


def _values(value: Any, metadata: ArrayMetadata) -> list[Number]:
    found = typed(value, metadata.layout.data_type.dtype)
    return [] if found is None else list(as_meant(found.reshape(-1), metadata).tolist())


def _typed(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    if isinstance(value, str):
        if value in NAMED_FLOATS:
            return np.array(NAMED_FLOATS[value], dtype) if dtype.kind == "f" else None
        try:
            data = base64.b64decode(value[:64], validate=True)
        except (binascii.Error, ValueError):
            return None
        wide = np.dtype("<f8") if dtype.kind == "f" else np.dtype("<i8")
        for kind in (dtype, wide):
            if len(data) == kind.itemsize:
                return _cast(np.frombuffer(data, kind)[0].item(), dtype)
        return None
    if isinstance(value, float) and dtype.kind == "f" and not np.isfinite(value):
        return np.array(value, dtype)
    return None if number(value) is None else _cast(value, dtype)


def _cast(value: Any, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    try:
        with np.errstate(all="ignore"):
            found = np.array(value).astype(dtype)
    except (OverflowError, ValueError):
        return None
    if dtype.kind == "f":
        return found
    # CF stores unsigned numbers in signed types: 255 is the byte -1.
    if isinstance(value, int) and dtype.kind in "iu" and int(found) != value:
        bits = 8 * dtype.itemsize
        return found if -(1 << bits - 1) <= value < 1 << bits else None
    return found if bool(found == value) else None


def packing(attributes: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """``scale_factor`` and ``add_offset`` of CF; None for one that is not given."""
    found = []
    for name in ("scale_factor", "add_offset"):
        value = attributes.get(name)
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        found.append(number(value))
    scale, offset = found
    return (None if scale == 0 else scale), offset
