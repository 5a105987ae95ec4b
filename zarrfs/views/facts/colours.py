"""How the elements of an image stand for colours, in the words of TIFF.

https://www.adobe.io/content/dam/udp/en/open/standards/tiff/TIFF6.pdf. DICOM has attributes of the
same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from zarrfs.views.facts.text import plain

_ENTRIES = 256
_MOST_SAMPLES = 65535
_DICOMS = {
    "MONOCHROME1": "MINISWHITE", "MONOCHROME2": "MINISBLACK", "PALETTE COLOR": "PALETTE",
}  # fmt: skip


class Colours(NamedTuple):
    """
    kind : TIFF's photometric interpretation, such as ``MINISWHITE``; empty if unknown.
    palette : of elements of 8 bits: reds, then greens, then blues, of 16 bits; empty if unknown.
    extra : of each sample that is no colour, TIFF's number: 1, 2 for opacity; 0 if unknown.
    """

    kind: str = ""
    palette: tuple[int, ...] = ()
    extra: tuple[int, ...] = ()


def colours_of(attributes: Mapping[str, Any]) -> Colours:
    """The colours by the attributes with the names of TIFF's tags."""
    said = plain(attributes.get("PhotometricInterpretation"), 32).upper()
    kind = _DICOMS.get(said, said)
    palette = _numbers(attributes.get("ColorMap"), 3 * _ENTRIES) if kind == "PALETTE" else ()
    extra = _numbers(attributes.get("ExtraSamples"), _MOST_SAMPLES)
    full = palette if len(palette) == 3 * _ENTRIES else ()
    return Colours(kind, full, tuple(use if use in (1, 2) else 0 for use in extra))


def _numbers(value: object, most: int) -> tuple[int, ...]:
    """Numbers of 16 bits; none if the value is anything else."""
    if not isinstance(value, list | tuple) or len(value) > most:
        return ()
    known = all(type(item) is int and 0 <= item < 1 << 16 for item in value)
    return tuple(value) if known else ()
