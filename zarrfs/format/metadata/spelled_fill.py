"""Converts known other spellings of numeric fill values to the form of the v3 specification.

Such writers are Bioformats and n5 (``"0"``), viv (``"nan"``), and programs that pass a fill value
on as text. A string for a bool stays unchanged and is refused: readers disagree whether ``"0"`` is
true.
"""

from __future__ import annotations

import re
from typing import Any

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INFINITY = re.compile(r"([+-]?)inf(inity)?", re.ASCII | re.IGNORECASE)
# Python does not parse longer ones, and no type has so many digits.
_LONGEST = 400


def plain_fill(value: Any, kind: str) -> Any:
    """The fill value in the form of the specification; a value without one stays unchanged.

    kind : as in numpy: of a bool (``b``), an integer (``i``, ``u``), a float (``f``) or a complex
        number (``c``), of any size.
    """
    if kind == "b":
        is_flag = isinstance(value, int | float) and value in (0, 1)
        return bool(value) if is_flag else value
    if kind == "c":
        if isinstance(value, list | tuple):
            return [plain_fill(part, "f") for part in value]
        return [plain_fill(value, "f"), 0.0] if isinstance(value, int | float | str) else value
    if isinstance(value, bool):
        return int(value)
    if kind in "iu":
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return _integer(value) if isinstance(value, str) else value
    return _float(value) if isinstance(value, str) else value


def _integer(text: str) -> Any:
    digits = text.strip()
    return int(digits) if len(digits) < _LONGEST and _INTEGER.fullmatch(digits) else text


def _float(text: str) -> Any:
    spelled = text.strip()
    if spelled.lower() == "nan":
        return "NaN"
    if match := _INFINITY.fullmatch(spelled):
        return "-Infinity" if match[1] == "-" else "Infinity"
    if len(spelled) < _LONGEST and _NUMBER.fullmatch(spelled):
        return float(spelled)
    return text
