"""Decodes GRIB messages; runs in a process of its own (`zarrfs.isolation`).

ecCodes and the image decoders below it trust their input.

https://confluence.ecmwf.int/display/ECC/ecCodes+Home
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import eccodes  # type: ignore[import-untyped]
import numpy as np


def decode(parameters: Mapping[str, Any], data: bytes) -> memoryview:
    """The values of a message, in its order, and all rows in the same direction.

    parameters : ``key`` of the values, their number ``elements``, and the resulting ``dtype``.

    Raises ValueError for a message that has another number of values, or cannot be decoded.
    """
    try:
        values = _values(str(parameters["key"]), int(parameters["elements"]), data)
    except eccodes.CodesInternalError as error:
        raise ValueError(f"grib: {error}") from error
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values.astype(parameters["dtype"])).data.cast("B")


def _values(key: str, elements: int, message: bytes) -> np.ndarray[Any, Any]:
    handle = eccodes.codes_new_from_message(message)
    try:
        # Checked before the library takes memory for the values.
        points = eccodes.codes_get_size(handle, key)
        if points != elements:
            raise ValueError(f"grib: has {points} points, expected {elements}")
        if key == "values":
            # Without this, missing points are 9999, which other points may be, too.
            eccodes.codes_set(handle, "missingValue", np.nan)
        values = np.asarray(eccodes.codes_get_array(handle, key))
        if values.size != elements:
            raise ValueError(f"grib: has {values.size} elements, expected {elements}")
        if key == "values":
            _unwind(handle, values)
        return values
    finally:
        eccodes.codes_release(handle)


def _unwind(handle: Any, values: np.ndarray[Any, Any]) -> None:
    """Turn round every other row where adjacent rows run in opposite directions.

    ecCodes gives latitudes and longitudes as if they did not.
    """
    flag, by_columns = "alternativeRowScanning", "jPointsAreConsecutive"
    if not eccodes.codes_is_defined(handle, flag) or not eccodes.codes_get_long(handle, flag):
        return
    rows, columns = (eccodes.codes_get_long(handle, key) for key in ("Ny", "Nx"))
    if rows * columns == values.size > 0:
        length = rows if eccodes.codes_get_long(handle, by_columns) else columns
        lines = values.reshape(-1, length)
        lines[1::2] = lines[1::2, ::-1].copy()
