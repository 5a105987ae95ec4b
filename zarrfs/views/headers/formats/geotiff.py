"""The tags that give the place of a TIFF's planes on the earth.

GeoTIFF 1.1: https://docs.ogc.org/is/19-008r4/19-008r4.html. GDAL, QGIS and rasterio read them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

from zarrfs.views.headers.described import Georeference

SHORT, DOUBLE = 3, 12
"""Types of values."""

Entry: TypeAlias = tuple[int, list[Any]]
"""Type, and values of that type."""

_CODE = re.compile(r"EPSG:(\d{4,5})", re.ASCII | re.IGNORECASE)
_LAST_CODE = re.compile(
    r"(?:AUTHORITY|ID)\[\s*\"EPSG\"\s*,\s*\"?(\d{4,5})\"?\s*\]\s*\]\s*$", re.ASCII
)


def georeference_tags(georeference: Georeference) -> dict[int, Entry]:
    """GeoTIFF's tags for the known properties: the place of the planes, and an EPSG code."""
    found: dict[int, Entry] = {}
    if georeference.transform is not None:
        x, width, row_x, y, column_y, height = georeference.transform
        if not row_x and not column_y and width > 0 > height:
            found[33550] = (DOUBLE, [width, -height, 0.0])
            found[33922] = (DOUBLE, [0.0, 0.0, 0.0, x, y, 0.0])
        else:
            matrix = [width, row_x, 0.0, x, column_y, height, 0.0, y, *[0.0] * 7, 1.0]
            found[34264] = (DOUBLE, matrix)
    # Each key with the tag and number of its values; pixels are areas.
    keys = [(1025, 0, 1, 1)]
    if (code := _epsg(georeference.wkt)) is not None:
        model, key = (2, 2048) if code.geographic else (1, 3072)
        keys = [(1024, 0, 1, model), *keys, (key, 0, 1, code.number)]
    if found or code is not None:
        rows = [(1, 1, 0, len(keys)), *keys]  # version 1.1.0
        found[34735] = (SHORT, [number for row in rows for number in row])
    return found


class _Epsg(NamedTuple):
    number: int
    geographic: bool


def _epsg(text: str) -> _Epsg | None:
    """The code of a coordinate reference system, from well-known text or ``EPSG:4326``."""
    if match := _CODE.fullmatch(text.strip()):
        number = int(match[1])
        # The codes of geographic systems and of projected ones are in separate ranges.
        if 4000 <= number < 5000:
            return _Epsg(number, geographic=True)
        projected = 2000 <= number < 4000 or 20000 <= number < 32768
        return _Epsg(number, geographic=False) if projected else None
    head = text[:6].upper()
    # The last code is that of the whole system; earlier codes are those of its parts.
    match = _LAST_CODE.search(text)
    if match is None or head not in ("GEOGCS", "GEOGCR", "PROJCS", "PROJCR"):
        return None
    number = int(match[1])
    return _Epsg(number, head.startswith("GEOG")) if 0 < number < 32768 else None
