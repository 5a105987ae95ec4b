"""ENVI: https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html."""

from __future__ import annotations

import os
import re

import numpy as np

from zarrfs.library.headers.header import (
    Header,
    HeaderError,
    data_type,
    fields,
    integers,
    read_start,
)
from zarrfs.views.headers.formats.envi import TYPES

MAGIC = b"ENVI"

_TYPES = {str(number): np.dtype(code).name for code, number in TYPES.items() if code != "b1"}
_AXES = {
    "bsq": ("bands", "lines", "samples"),
    "bil": ("lines", "bands", "samples"),
    "bip": ("lines", "samples", "bands"),
}
_BRACES = re.compile(r"\{[^}]*\}")


def header_beside(path: str) -> str | None:
    """The header of a data file: ``x.img.hdr``, or ``x.hdr``; None if there is none."""
    for candidate in (f"{path}.hdr", f"{os.path.splitext(path)[0]}.hdr"):
        if candidate != path and os.path.isfile(candidate):
            return candidate
    return None


def read_envi(path: str) -> Header:
    """In the order in which the elements lie; one band is no axis. Raises HeaderError."""
    text = read_start(path).decode("utf-8", "replace")
    header = fields(_BRACES.sub("", text), "=")
    interleave = header.get("interleave", "bsq").lower()
    if interleave not in _AXES:
        raise HeaderError(f"interleave is {interleave[:100]!r}")
    extents = {
        name: integers(name, header.get(name, "1" if name == "bands" else ""))[0]
        for name in ("bands", "lines", "samples")
    }
    axes = [axis for axis in _AXES[interleave] if axis != "bands" or extents[axis] != 1]
    shape = tuple(extents[axis] for axis in axes)
    return Header(shape, data_type("data type", header.get("data type", ""), _TYPES))
