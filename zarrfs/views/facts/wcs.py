"""FITS keywords among the attributes of an array, as astropy and its users copy them from a header.

They number the axes from the fastest one, as FITS does: 1 is the last axis of the array.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from zarrfs.views.facts.text import ascii_text, number

Cards: TypeAlias = Mapping[str, "str | int | float | bool"]

_KEYWORD = re.compile(r"[A-Z][A-Z0-9_-]{0,7}", re.ASCII)
# The file itself says these, or they are about other kinds of files.
_OWN = re.compile(
    r"SIMPLE|BITPIX|NAXIS\d*|EXTEND|GROUPS|[PG]COUNT|XTENSION|BSCALE|BZERO|BLANK|BUNIT|END"
    r"|DATASUM|CHECKSUM|COMMENT|HISTORY|CONTINUE|LONGSTRN|Z(IMAGE|CMPTYPE|TILE\d*|NAXIS\d*)"
    r"|T(FORM|TYPE|DIM|UNIT)\d+|TFIELDS",
    re.ASCII,
)
_OF_AXIS = re.compile(
    r"(CTYPE|CNAME|CUNIT|CRPIX|CRVAL|CDELT|CROTA|CRDER|CSYER|PV|PS)(\d+)(_\d+)?([A-Z]?)", re.ASCII
)
_OF_AXES = re.compile(r"(PC|CD)(\d+)_(\d+)([A-Z]?)", re.ASCII)
_MOST, _LONGEST = 256, 68


def cards_of(attributes: Mapping[str, Any]) -> Cards:
    """The attributes that are called like keywords and have values that a header can have."""
    found: dict[str, str | int | float | bool] = {}
    for key, value in attributes.items():
        if len(found) == _MOST or not _KEYWORD.fullmatch(key) or _OWN.fullmatch(key):
            continue
        if isinstance(value, str) and len(value) <= _LONGEST:
            found[key] = ascii_text(value, _LONGEST)
        elif isinstance(value, bool) or number(value) is not None:
            found[key] = value
    return found


def says_axes(cards: Cards) -> bool:
    """Whether they say what the axes of the image are."""
    return any(_OF_AXIS.fullmatch(key) or _OF_AXES.fullmatch(key) for key in cards)


def reversed_axes(cards: Cards, rank: int) -> Cards:
    """The same for a file whose first axis is the last one of these."""

    def turned(text: str) -> str:
        return str(rank + 1 - int(text)) if 1 <= int(text) <= rank else text

    found = {}
    for key, value in cards.items():
        if match := _OF_AXIS.fullmatch(key):
            found[f"{match[1]}{turned(match[2])}{match[3] or ''}{match[4]}"] = value
        elif match := _OF_AXES.fullmatch(key):
            found[f"{match[1]}{turned(match[2])}_{turned(match[3])}{match[4]}"] = value
        else:
            found[key] = value
    return found


def cards_of_part(cards: Cards, origin: Sequence[int], kept: Sequence[int]) -> Cards:
    """Those of a box that begins at ``origin`` and has the axes ``kept`` of the array.

    Without the axes where one is not kept: the others may depend on it.
    """
    rank = len(origin)
    if len(kept) < rank:
        return {
            key: value
            for key, value in cards.items()
            if not _OF_AXIS.fullmatch(key) and not _OF_AXES.fullmatch(key) and key != "WCSAXES"
        }
    found = dict(cards)
    if says_axes(cards):
        alternates = {m[4] for key in cards if (m := _OF_AXIS.fullmatch(key))} or {""}
        for axis, first in enumerate(origin):
            for alternate in alternates:
                key = f"CRPIX{rank - axis}{alternate}"
                middle = number(found.get(key, 0.0))
                if first and middle is not None:
                    found[key] = middle - first
    return found
