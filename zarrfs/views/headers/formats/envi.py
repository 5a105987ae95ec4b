"""ENVI's header, ``array.bin.hdr``:
https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html.

GDAL, QGIS, ENVI and IDL read it. Its name is the whole name of the data file with ``.hdr``: GDAL
takes every file ``array.*`` beside an ``array.hdr`` for ENVI data.
"""

from __future__ import annotations

import math
from functools import partial

from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.headers.text import ascii_text, digits

TYPES = {
    "b1": 1,
    "u1": 1,
    "i2": 2,
    "i4": 3,
    "f4": 4,
    "f8": 5,
    "c8": 6,
    "c16": 9,
    "u2": 12,
    "u4": 13,
    "i8": 14,
    "u8": 15,
}
_MOST_BANDS = 65535
"""The most bands that GDAL opens."""


def envi(array: Described) -> Plan:
    """Up to three axes as they are; all axes before the last two become one axis of bands."""
    number = array.type_in(TYPES, "ENVI")
    array.check("ENVI", 1, 32)
    bands = array.channels or math.prod(array.shape[:-2])
    if bands > _MOST_BANDS:
        raise Inexpressible(f"ENVI takes at most {_MOST_BANDS} bands, the array has {bands}")
    if array.channels and len(array.axes) > 3:
        raise Inexpressible("ENVI has no images of several channels in a stack")
    return partial(_form, array, number, bands)


def _form(array: Described, number: int, bands: int) -> Form:
    axes = (Axis(1), *array.image_axes)
    lines = [
        "ENVI",
        f"description = {{{_text(array.name)}}}",
        f"samples = {axes[-1].length}",
        f"lines = {axes[-2].length}",
        f"bands = {bands}",
        "header offset = 0",
        "file type = ENVI Standard",
        f"data type = {number}",
        f"interleave = {'bip' if array.channels and len(axes) > 2 else 'bsq'}",
        f"byte order = {int(array.big)}",
    ]
    fill = array.no_data
    if fill is not None and math.isfinite(fill):
        lines.append(f"data ignore value = {digits(fill)}")
    reference = array.georeference
    if reference.transform is not None:
        x, width, _, y, _, height = reference.transform
        corner = ", ".join(digits(n) for n in (1, 1, x, y, abs(width), abs(height)))
        if height < 0:
            lines.append(f"map info = {{Arbitrary, {corner}, 0, North}}")
    if reference.wkt.upper().startswith(("PROJCS", "GEOGCS")):
        lines.append(f"coordinate system string = {{{_text(reference.wkt, 8192)}}}")
    return Form("".join(f"{line}\n" for line in lines).encode("ascii"))


def _text(value: str, longest: int = 128) -> str:
    return ascii_text(value, longest).replace("{", "(").replace("}", ")")
