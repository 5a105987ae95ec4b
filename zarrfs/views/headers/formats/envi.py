"""ENVI's header, ``array.bin.hdr``:
https://www.nv5geospatialsoftware.com/docs/enviheaderfiles.html.

GDAL, QGIS, ENVI and IDL read it. Its name is the whole name of the data file with ``.hdr``: GDAL
takes every file ``array.*`` beside an ``array.hdr`` for ENVI data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import partial

from zarrfs.views.facts.cf import cf_crs
from zarrfs.views.facts.facts import Axis, Georeference
from zarrfs.views.facts.place.crs import epsg, well_known_text
from zarrfs.views.facts.text import ascii_text, digits
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan

_MOST_BANDS = 65535
"""The most bands that GDAL opens."""
_MOST_SAID = 8192
"""Bands with names and scales, which are lists with an entry for each band."""
_UTM = re.compile(r"EPSG:32([67])(\d\d)", re.ASCII | re.IGNORECASE)


def envi(array: Described) -> Plan:
    """Up to three axes as they are; all axes before the last two become one axis of bands."""
    number = array.check("ENVI", 1, 32)
    bands = array.channels or math.prod(array.shape[:-2])
    if bands > _MOST_BANDS:
        raise Inexpressible(f"ENVI takes at most {_MOST_BANDS} bands, the array has {bands}")
    if array.channels and len(array.axes) > 3:
        raise Inexpressible("ENVI has no images of several channels in a stack")
    return partial(_form, array, number, bands)


def _form(array: Described, number: str, bands: int) -> Form:
    axes = (Axis(1), *array.image_axes)
    facts = array.facts
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
    if (missing := array.no_data) is not None:
        lines.append(f"data ignore value = {digits(missing)}")
    if facts.packed and bands <= _MOST_SAID:
        gain = digits(1.0 if facts.scale is None else facts.scale)
        lines.append(f"data gain values = {{{', '.join([gain] * bands)}}}")
        lines.append(f"data offset values = {{{', '.join([digits(facts.offset or 0)] * bands)}}}")
    names = array.band_names(bands) if bands <= _MOST_SAID else None
    if names is not None:
        lines.append(f"band names = {{{', '.join(_text(n).replace(',', ' ') for n in names)}}}")
    lines += _place(array.georeference, cf_crs(facts.grid_mapping))
    return Form("".join(f"{line}\n" for line in lines).encode("ascii"))


def _place(reference: Georeference, instead: str) -> Iterator[str]:
    """The place of the raster, if this header can say all of it.

    instead : WKT 1 of the reference system; empty if it is not known.
    """
    crs = reference.crs
    if (found := epsg(crs)) is not None and not crs.upper().startswith(("PROJCS", "GEOGCS")):
        crs = f"EPSG:{found.number}"
        instead = instead or well_known_text(crs)
    if instead and not (crs == "EPSG:4326" or _UTM.fullmatch(crs)):
        crs = instead
    described = crs.upper().startswith(("PROJCS", "GEOGCS"))
    if described:
        yield f"coordinate system string = {{{_text(crs, 8192)}}}"
    if reference.transform is None:
        return
    x, width, row_x, y, column_y, height = reference.transform
    if row_x or column_y or not width > 0 > height:
        return
    corner = ", ".join(digits(n) for n in (1, 1, x, y, width, -height))
    if described:
        yield f"map info = {{Arbitrary, {corner}, 0, North}}"
    elif crs.upper() in ("EPSG:4326", "OGC:CRS84"):
        yield f"map info = {{Geographic Lat/Lon, {corner}, WGS-84}}"
    elif (utm := _UTM.fullmatch(crs)) is not None and 1 <= int(utm[2]) <= 60:
        half = "North" if utm[1] == "6" else "South"
        yield f"map info = {{UTM, {corner}, {int(utm[2])}, {half}, WGS-84}}"


def _text(value: str, longest: int = 128) -> str:
    return ascii_text(value, longest).replace("{", "(").replace("}", ")")
