"""Reads the value of one mount option; each function raises `ValueError`.

The message names a correct form: "is not a size such as 512M".
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable

from zarrfs.views.headers.registry import ALL, DEFAULT, FORMATS, GROUP_OPTIONS, is_format

_SIZE = r"(\d+(?:\.\d+)?)\s*((?i:[kmgt]?))(?i:i?b)?"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_MIN_MEMORY = 16 << 20
_MAX_MEMORY = 1 << 60

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def flag(text: str) -> bool:
    lowered = text.lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("is neither true nor false")


def memory(text: str) -> int:
    """Bytes, from digits and one of the binary units K, M, G, T."""
    match = re.fullmatch(_SIZE, text)
    if match is None:
        raise ValueError("is not a size such as 512M or 4G")
    number = float(match[1]) * _UNITS[match[2].lower()]
    if number > _MAX_MEMORY:
        raise ValueError("is too large")
    size = int(number)
    if size < _MIN_MEMORY:
        raise ValueError(f"is less than the {_MIN_MEMORY >> 20}M needed")
    return size


def count(text: str, least: int = 1) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise ValueError(f"is not a number from {least} up")
    return int(text)


def count_or_none(text: str) -> int:
    return count(text, 0)


def numeric_id(text: str) -> int:
    value = count_or_none(text)
    if value >= 0xFFFFFFFF:  # that one means "unchanged" to the kernel
        raise ValueError("is not a user or group number")
    return value


def umask(text: str) -> int:
    if not re.fullmatch(r"[0-7]{1,4}", text) or int(text, 8) > 0o777:
        raise ValueError("is not an octal mask such as 027")
    return int(text, 8)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError("is not a number of seconds above 0")
    return value


def recheck(text: str) -> float:
    """Seconds; ``always`` is 0 and ``never`` infinity."""
    lowered = text.lower()
    if lowered in ("always", "0"):
        return 0.0
    if lowered == "never":
        return math.inf
    try:
        return seconds(text)
    except ValueError:
        raise ValueError("is neither a number of seconds nor always nor never") from None


def zarr_format(text: str) -> int:
    if text not in ("1", "2", "3"):
        raise ValueError("is not one of 1, 2, 3")
    return int(text)


def some_of(*names: str) -> Callable[[str], tuple[str, ...]]:
    """Any of ``names``, separated by commas, in this order; nothing where there is none."""

    def read(text: str) -> tuple[str, ...]:
        found = [part.strip().lower() for part in text.split(",") if part.strip()]
        if any(name not in names for name in found):
            raise ValueError(f"is not a list of {', '.join(names)}")
        return tuple(name for name in names if name in found)

    return read


def one_of(*choices: str) -> Callable[[str], str]:
    """A reader for a closed set of words; upper and lower case are the same."""

    def read(text: str) -> str:
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        raise ValueError(f"is not one of {', '.join(choices)}")

    return read


def views(text: str) -> tuple[str, ...]:
    """Names of formats; ``none`` is no name at all."""
    names = tuple(name for name in text.split(",") if name)
    if names == ("none",):
        return ()
    for name in names:
        if name not in (ALL, DEFAULT) and not is_format(name):
            known = ", ".join((*FORMATS, *GROUP_OPTIONS))
            raise ValueError(f"is not all, none, default or names of {known}")
    if not names:
        raise ValueError("is empty; none shows no other format")
    return names


REGION_PART = re.compile(r"\s*(-?\d{1,19}|(-?\d{1,19})?\s*:\s*(-?\d{1,19})?)\s*", re.ASCII)
"""The part of one axis in a region."""


def region(text: str) -> str:
    """The text, which only an array of known shape gives a meaning."""
    if not all(REGION_PART.fullmatch(part) for part in text.split(",")):
        raise ValueError("is not of the form START:STOP or INDEX of each axis: 0:10,:,5")
    return text


def path(text: str) -> str:
    """A path, made absolute: the daemon leaves the directory it was started in."""
    if not text:
        raise ValueError("is empty")
    return os.path.abspath(text)


def node_path(text: str) -> str:
    """A path below the source, without the slashes that mean nothing."""
    names = [name for name in text.split("/") if name]
    if any(name in (".", "..") or "\0" in name for name in names):
        raise ValueError("is not a path below the source, such as images/raw")
    return "/".join(names)


def path_or_none(text: str) -> str | None:
    return None if text.lower() == "none" else path(text)


def text(value: str) -> str:
    if not value:
        raise ValueError("is empty")
    return value
