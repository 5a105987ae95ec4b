"""The tags that give the place of a TIFF's planes on the earth.

GeoTIFF 1.1: https://docs.ogc.org/is/19-008r4/19-008r4.html. GDAL, QGIS and rasterio read them.
"""

from __future__ import annotations

from zarrfs.views.facts.crs import epsg
from zarrfs.views.facts.facts import Georeference
from zarrfs.views.headers.tiff.directories import DOUBLE, SHORT, Entry


def georeference_tags(georeference: Georeference) -> dict[int, Entry]:
    """GeoTIFF's tags for the known properties: the place of the planes, and an EPSG code."""
    found: dict[int, Entry] = {}
    if georeference.transform is not None:
        x, width, row_x, y, column_y, height = georeference.transform
        if georeference.nodes:
            # The place is that of the middle of the first pixel.
            x, y = x + (width + row_x) / 2, y + (column_y + height) / 2
        if not row_x and not column_y and width > 0 > height:
            found[33550] = (DOUBLE, [width, -height, 0.0])
            found[33922] = (DOUBLE, [0.0, 0.0, 0.0, x, y, 0.0])
        else:
            matrix = [width, row_x, 0.0, x, column_y, height, 0.0, y, *[0.0] * 7, 1.0]
            found[34264] = (DOUBLE, matrix)
    # Each key with the tag and number of its values; pixels are areas, or points.
    keys = [(1025, 0, 1, 2 if georeference.nodes else 1)]
    if (code := epsg(georeference.crs)) is not None:
        model, key = (2, 2048) if code.kind == "geographic" else (1, 3072)
        keys = [(1024, 0, 1, model), *keys, (key, 0, 1, code.number)]
    if found or code is not None:
        rows = [(1, 1, 0, len(keys)), *keys]  # version 1.1.0
        found[34735] = (SHORT, [number for row in rows for number in row])
    return found
