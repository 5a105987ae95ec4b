"""Reads the header of one TIFF file; runs in a process of its own (`zarrfs.isolation`).

tifffile trusts the file: a damaged one may exhaust the memory or run forever.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import tifffile

from zarrfs.format.numpy_types import data_type_json

# It logs problems of the file; those that matter are raised.
logging.getLogger("tifffile").setLevel(logging.CRITICAL)


def decode(parameters: Mapping[str, Any], _: bytes) -> bytes:
    """Shape and data type of the first series of pages, as JSON.

    parameters : ``path``, of the file.

    Raises ValueError, and any exception of the library.
    """
    with tifffile.TiffFile(parameters["path"]) as file:
        series = file.series[0]
        if series.dtype is None:
            raise ValueError("the file does not say the type of its elements")
        return json.dumps([list(map(int, series.shape)), data_type_json(series.dtype)]).encode()
