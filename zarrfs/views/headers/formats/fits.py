"""FITS, of astronomy: https://fits.gsfc.nasa.gov/fits_standard.html.

Its numbers are big-endian. Unsigned numbers are stored as signed ones minus half their range, which
inverts their most significant bit. Its fastest axis is the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.text import ascii_text
from zarrfs.views.facts.wcs import reversed_axes, says_axes
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Plan

_BLOCK = 2880
# The zero point of each type that is stored with its first bit inverted.
_ZEROS = {"i1": -128, "u2": 1 << 15, "u4": 1 << 31, "u8": 1 << 63}
_MOST_AXES = 99


def fits(array: Described) -> Plan:
    """The primary image, of up to 99 axes."""
    bits = int(array.check("FITS", 1, _MOST_AXES, longest=2**63 - 1))
    return partial(_form, array, bits, _ZEROS.get(array.code))


def _form(array: Described, bits: int, zero: int | None) -> Form:
    text = "".join(card.ljust(80) for card in _cards(array, bits, zero)).encode("ascii")
    return Form(
        text + b" " * (-len(text) % _BLOCK),
        array.layout._replace(byteorder="big"),
        bytes(-array.nbytes % _BLOCK),
        flipped=zero is not None,
    )


def _cards(array: Described, bits: int, zero: int | None) -> Iterator[str]:
    axes = array.axes[::-1]
    yield _card("SIMPLE", "T")
    yield _card("BITPIX", str(bits))
    yield _card("NAXIS", str(len(axes)))
    for i, axis in enumerate(axes, 1):
        yield _card(f"NAXIS{i}", str(axis.length))
    facts = array.facts
    scale, offset = (1.0 if facts.scale is None else facts.scale), facts.offset or 0.0
    packed = (scale, offset) != (1.0, 0.0)
    # Readers calculate with floats, which lose all small numbers beside such a zero point.
    exact = array.code != "u8" or not packed
    if packed and exact:
        # FITS applies both to the stored number: an unsigned one is stored minus `zero`.
        yield _card("BSCALE", _float(scale))
        yield _card("BZERO", _float(offset + scale * (zero or 0)))
    elif zero is not None:
        yield _card("BSCALE", "1")
        yield _card("BZERO", str(zero))
    # With it, astropy opens no bytes with a sign.
    blank = bits > 0 and (array.code != "i1" or packed)
    if blank and isinstance(array.no_data, int):
        yield _card("BLANK", str(array.no_data - (zero or 0)))
    if exact and (unit := ascii_text(facts.unit, 60)):
        yield _card("BUNIT", _string(unit))
    cards = facts.cards
    if array.layout.order == "F":
        cards = reversed_axes(cards, len(axes))
    if any(_has_facts(axis) for axis in axes) and not says_axes(cards):
        for i, axis in enumerate(axes, 1):
            yield from _axis(i, axis)
    # The number of axes of the system comes before the rest of it.
    for key in sorted(cards, key=lambda key: key != "WCSAXES"):
        yield _card(key, _value(cards[key]))
    yield "END"


def _has_facts(axis: Axis) -> bool:
    return bool(axis.name or axis.unit or axis.spacing is not None or axis.origin)


def _axis(i: int, axis: Axis) -> Iterator[str]:
    if axis.irregular:
        return
    if axis.name:
        yield _card(f"CTYPE{i}", _string(ascii_text(axis.name.upper(), 60)))
    if axis.unit:
        yield _card(f"CUNIT{i}", _string(ascii_text(axis.unit, 60)))
    yield _card(f"CRPIX{i}", "1.0")
    yield _card(f"CRVAL{i}", _float(axis.origin))
    yield _card(f"CDELT{i}", _float(axis.spacing or 1.0))


def _card(key: str, value: str) -> str:
    return f"{key:8}= {value}" if value.startswith("'") else f"{key:8}= {value:>20}"


def _string(text: str) -> str:
    return "'" + text.replace("'", "''").ljust(8) + "'"


def _value(value: str | float) -> str:
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, str):
        return _string(value)
    return str(value) if isinstance(value, int) and abs(value) < 1 << 63 else _float(value)


def _float(value: float) -> str:
    return repr(float(value)).upper()
