"""Values of TIFF's tags from the facts about an array."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from xml.sax.saxutils import escape

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.units import metres
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.tiff.directories import RATIONAL, SHORT, Entry

# SampleFormat.
SAMPLE_FORMATS = {
    **dict.fromkeys(("b1", "u1", "u2", "u4", "u8"), 1),
    **dict.fromkeys(("i1", "i2", "i4", "i8"), 2),
    **dict.fromkeys(("f2", "f4", "f8"), 3),
    **dict.fromkeys(("c8", "c16"), 6),
}


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


def gdal_metadata(array: Described, samples: int) -> bytes | None:
    """Unit, scale, offset and description of each sample, in GDAL's form; None if none is known."""
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
    if not items:
        return None
    return "".join(["<GDALMetadata>", *items, "</GDALMetadata>"]).encode() + b"\0"
