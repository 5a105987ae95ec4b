"""The CF attribute ``_FillValue`` in the other version of Zarr, as xarray reads and writes it.

In Zarr 2 the fill value of an array with named axes is ``_FillValue`` itself. In Zarr 3 it is an
attribute, in which floating point numbers are in Base64, and the fill value masks nothing.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.format.making.new_array import NewArray
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.registry import parse_data_type
from zarrfs.format.text_forms import read_fill
from zarrfs.views.facts.missing import of_xarray, typed

_NAME = "_FillValue"


def with_missing(
    array: NewArray, attributes: Mapping[str, Any], source: ArrayMetadata
) -> tuple[NewArray, Mapping[str, Any]]:
    """An array and its attributes that mask the same elements as the source does."""
    data_type = parse_data_type(array.data_type)
    kind = data_type.dtype.kind
    if not of_xarray(source):
        return array, attributes
    if kind not in "fiu":
        # Booleans and texts have no attribute, but xarray masks them by a fill value of Zarr 2.
        if array.zarr_format == 2 and source.zarr_format == 3 and _NAME not in attributes:
            array = replace(array, fill_value=None)
        return array, attributes
    given = attributes.get(_NAME)
    if array.zarr_format == 3 and kind == "f" and isinstance(given, int | float):
        # As NetCDF has it, and as xarray does not read it.
        return array, {**attributes, _NAME: _encoded(np.float64(given))}
    if array.zarr_format == source.zarr_format:
        return array, attributes
    if array.zarr_format == 3:
        if not source.has_fill or _NAME in attributes:
            return array, attributes
        value = data_type.element(data_type.fill_bytes(array.fill_value))[()]
        return array, {**attributes, _NAME: _encoded(value)}
    fill = data_type.element(data_type.fill_bytes(array.fill_value))
    if source.zarr_format != 3:
        return array, attributes
    if _NAME not in attributes and bool(np.isnan(fill)):
        return array, attributes
    rest = {name: value for name, value in attributes.items() if name != _NAME}
    found = typed(attributes.get(_NAME), data_type.dtype)
    if found is None or found.size != 1:
        return replace(array, fill_value=None), rest
    return replace(array, fill_value=read_fill(str(found.reshape(-1)[0]), data_type)), rest


def _encoded(value: Any) -> Any:
    if value.dtype.kind != "f":
        return int(value)
    return base64.standard_b64encode(struct.pack("<d", float(value))).decode()
