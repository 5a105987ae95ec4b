"""GDAL's virtual raster over raw bands: https://gdal.org/en/stable/drivers/raster/vrt.html."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from xml.sax.saxutils import escape

from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import LARGEST_HEADER, Form, Inexpressible, Plan

# GDAL's pixel and line offsets are 32-bit numbers of bytes.
_LARGEST_OFFSET = 2**31 - 1
_MOST_BANDS = 8192
_BAND = 400
"""Bytes of a band without its names and values, at most."""


def vrt(array: Described) -> Plan:
    """A raster with one band per plane, or per channel of an image."""
    name = array.check("GDAL", 1, 32)
    bands = array.channels or math.prod(array.shape[:-2])
    if bands > _MOST_BANDS:
        raise Inexpressible(f"a VRT of {bands} bands would be too large")
    if array.channels and len(array.axes) > 3:
        raise Inexpressible("GDAL has no images of several channels in a stack")
    width = array.image_axes[-1].length
    if width * array.data_type.item_size * max(1, array.channels) > _LARGEST_OFFSET:
        raise Inexpressible("GDAL takes lines of at most 2 GiB")
    # Only the text of the bands is long.
    names = array.band_names(bands) or [array.facts.description]
    longest = max(len(escape(title)) for title in names) + sum(map(len, _values(array)))
    if bands * (_BAND + longest + len(escape(array.data_file))) > LARGEST_HEADER:
        raise Inexpressible(f"a VRT of {bands} bands would be too large")
    return partial(_form, array, name, bands)


def _form(array: Described, name: str, bands: int) -> Form:
    return Form("".join(f"{line}\n" for line in _lines(array, name, bands)).encode())


def _lines(array: Described, name: str, bands: int) -> Iterator[str]:
    axes = array.image_axes
    width, height = axes[-1].length, axes[-2].length if len(axes) > 1 else 1
    item = array.data_type.item_size
    pixel = item * max(1, array.channels)
    line = pixel * width
    band_offset = item if array.channels else line * height
    yield f'<VRTDataset rasterXSize="{width}" rasterYSize="{height}">'
    reference = array.georeference
    if reference.crs:
        yield f"  <SRS>{escape(reference.crs)}</SRS>"
    if reference.transform is not None:
        numbers = ", ".join(repr(float(n)) for n in reference.transform)
        yield f"  <GeoTransform>{numbers}</GeoTransform>"
    if reference.nodes:
        yield '  <Metadata><MDI key="AREA_OR_POINT">Point</MDI></Metadata>'
    order = "MSB" if array.big else "LSB"
    names = array.band_names(bands)
    source = escape(array.data_file)
    values = list(_values(array))
    for band in range(bands):
        yield (f'  <VRTRasterBand dataType="{name}" band="{band + 1}" subClass="VRTRawRasterBand">')
        if title := array.facts.description if names is None else names[band]:
            yield f"    <Description>{escape(title)}</Description>"
        yield from values
        yield f'    <SourceFilename relativeToVRT="1">{source}</SourceFilename>'
        yield f"    <ImageOffset>{band * band_offset}</ImageOffset>"
        yield f"    <PixelOffset>{pixel}</PixelOffset>"
        yield f"    <LineOffset>{line}</LineOffset>"
        yield f"    <ByteOrder>{order}</ByteOrder>"
        yield "  </VRTRasterBand>"
    yield "</VRTDataset>"


def _values(array: Described) -> Iterator[str]:
    """The meaning of the elements of a band."""
    facts = array.facts
    if (missing := array.no_data) is not None:
        yield f"    <NoDataValue>{missing!r}</NoDataValue>"
    if colours := _palette(array):
        yield "    <ColorInterp>Palette</ColorInterp>"
        yield "    <ColorTable>"
        by = 8 if max(colours) > 255 else 0
        for entry in zip(*(colours[at : at + 256] for at in (0, 256, 512)), strict=True):
            red, green, blue = (value >> by for value in entry)
            yield f'      <Entry c1="{red}" c2="{green}" c3="{blue}" c4="255"/>'
        yield "    </ColorTable>"
    if facts.unit:
        yield f"    <UnitType>{escape(facts.unit)}</UnitType>"
    if facts.packed:
        yield f"    <Offset>{facts.offset or 0.0!r}</Offset>"
        yield f"    <Scale>{1.0 if facts.scale is None else facts.scale!r}</Scale>"


def _palette(array: Described) -> tuple[int, ...]:
    """All reds, greens and blues of elements of 8 bits; empty if these are no colours by number."""
    if array.code != "u1" or array.channels:
        return ()
    # GDAL shows TIFF files whose 0 is white with such a palette.
    inverted = (*range(255, -1, -1),) * 3
    return inverted if array.facts.colours.kind == "MINISWHITE" else array.facts.colours.palette
