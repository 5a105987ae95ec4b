"""Values of TIFF's tags from the facts about an array."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from xml.sax.saxutils import escape

from zarrfs.views.facts.facts import Axis, Georeference
from zarrfs.views.facts.place.crs import epsg
from zarrfs.views.facts.units import metres
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Inexpressible
from zarrfs.views.headers.tiff.directories import ASCII, DOUBLE, LONG, RATIONAL, SHORT, Entry

_PALETTE = 3
# Numbers of photometric interpretations, and the samples that they take.
_COLOURS = {
    "MINISWHITE": (0, 1), "MINISBLACK": (1, 1), "RGB": (2, 3), "PALETTE": (_PALETTE, 1),
    "SEPARATED": (5, 4), "CIELAB": (8, 3),
}  # fmt: skip


def image_tags(array: Described, bands: int = 1) -> dict[int, Entry]:
    """The entries of all directories of an image, besides the places of its elements.

    bands : planes of one directory, as samples in planes of their own.
    """
    y, x = array.image_axes[-2:]
    colours, inks = photometric(array, bands)
    samples = max(1, array.channels, bands)
    found: dict[int, Entry] = {
        256: (LONG, [x.length]),
        257: (LONG, [y.length]),
        258: (SHORT, [array.data_type.item_size * 8] * samples),
        259: (SHORT, [1]),  # not compressed
        262: (SHORT, [colours]),
        277: (SHORT, [samples]),
        339: (SHORT, [int(array.type_in("TIFF"))] * samples),
    }
    if samples > 1:
        found[284] = (SHORT, [2 if bands > 1 else 1])
    if extra := samples - inks:
        kinds = array.facts.colours.extra
        found[338] = (SHORT, list(kinds) if len(kinds) == extra else [0] * extra)
    if colours == _PALETTE:
        found[320] = (SHORT, list(array.facts.colours.palette))
    if (missing := array.no_data) is not None:
        found[42113] = (ASCII, [f"{missing!r}\0".encode()])  # GDAL's NoData
    return found


def photometric(array: Described, bands: int = 1) -> tuple[int, int]:
    """The photometric interpretation, and how many samples it takes. Raises Inexpressible.

    Planes of one sample each, such as those of one colour, are grey.
    """
    kind, palette, _ = array.facts.colours
    samples = max(1, array.channels)
    if kind == "PALETTE" and not (palette and samples == bands == 1 and array.code == "u1"):
        raise Inexpressible("TIFF has a palette for one channel of 8 bits, and with all colours")
    found = _COLOURS.get(kind)
    if found is not None and found[1] <= samples:
        return found
    if kind and array.channels:
        raise Inexpressible(f"TIFF with {samples} channels in {kind} is not made")
    return _COLOURS["RGB" if samples in (3, 4) else "MINISBLACK"]


def resolutions(x: Axis, y: Axis) -> dict[int, Entry]:
    """Elements per centimetre along axes of known units of length."""
    length = [metres(axis.unit) for axis in (x, y)]
    if x.spacing is None or y.spacing is None or length[0] is None or length[1] is None:
        return {}
    return resolutions_per([x.size * length[0] * 100, y.size * length[1] * 100], 3)


def resolutions_per(spacings: Sequence[float], unit: int) -> dict[int, Entry]:
    """Elements per unit along x and y; ``unit`` : 1 for none, 3 for the centimetre."""
    found = [_per_unit(spacing) for spacing in spacings]
    if found[0] is None or found[1] is None:
        return {}
    return {282: (RATIONAL, [found[0]]), 283: (RATIONAL, [found[1]]), 296: (SHORT, [unit])}


def _per_unit(spacing: float) -> tuple[int, int] | None:
    """The nearest fraction that TIFF can hold; None if it is not near."""
    if not 1e-9 < spacing < 1e9:
        return None
    fraction = 1 / Fraction(spacing)
    if spacing > 1:
        fraction = 1 / (1 / fraction).limit_denominator(2**32 // (int(spacing) + 1))
    else:
        fraction = fraction.limit_denominator(2**32 // (int(1 / spacing) + 1))
    numerator, denominator = fraction.numerator, fraction.denominator
    return (numerator, denominator) if 0 < numerator < 2**32 > denominator else None


def gdal_metadata(array: Described, samples: int) -> dict[int, Entry]:
    """Unit, scale, offset and description of each sample, in GDAL's form, if any is known."""
    facts = array.facts
    said: list[tuple[str, str]] = []
    if facts.packed:
        said.append(("offset", repr(facts.offset or 0.0)))
        said.append(("scale", repr(1.0 if facts.scale is None else facts.scale)))
    if facts.unit:
        said.append(("unittype", facts.unit))
    names = array.band_names(samples) if array.channels or samples > 1 else None
    items = []
    for sample in range(samples):
        title = facts.description if names is None else names[sample]
        for role, value in [*said, *([("description", title)] if title else [])]:
            place = f'name="{role.upper()}" sample="{sample}" role="{role}"'
            items.append(f"<Item {place}>{escape(value)}</Item>")
    text = "".join(["<GDALMetadata>", *items, "</GDALMetadata>\0"])
    return {42112: (ASCII, [text.encode()])} if items else {}


# The tags that give the place of a TIFF's planes on the earth.
# GeoTIFF 1.1: https://docs.ogc.org/is/19-008r4/19-008r4.html. GDAL, QGIS and rasterio read them.


def georeference_tags(georeference: Georeference) -> dict[int, Entry]:
    """GeoTIFF's tags for the known properties: the place of the planes, and an EPSG code."""
    found: dict[int, Entry] = {}
    code = epsg(georeference.crs)
    nodes = georeference.nodes and code is not None
    if georeference.transform is not None:
        x, width, row_x, y, column_y, height = georeference.transform
        if nodes:
            # The place is that of the middle of the first pixel.
            x, y = x + (width + row_x) / 2, y + (column_y + height) / 2
        if not row_x and not column_y and width > 0 > height:
            found[33550] = (DOUBLE, [width, -height, 0.0])
            found[33922] = (DOUBLE, [0.0, 0.0, 0.0, x, y, 0.0])
        else:
            matrix = [width, row_x, 0.0, x, column_y, height, 0.0, y, *[0.0] * 7, 1.0]
            found[34264] = (DOUBLE, matrix)
    # Each key with the tag and number of its values; pixels are areas, or points. Without a known
    # system there are none: GDAL would make one of its own from any key.
    keys: list[tuple[int, ...]] = []
    if code is not None:
        model, key = (2, 2048) if code.kind == "geographic" else (1, 3072)
        keys = [(1024, 0, 1, model), (1025, 0, 1, 2 if nodes else 1), (key, 0, 1, code.number)]
    if found or keys:
        rows = [(1, 1, 0, len(keys)), *keys]  # version 1.1.0
        found[34735] = (SHORT, [number for row in rows for number in row])
    return found
