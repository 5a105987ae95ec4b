"""The result of reading a header, and the limit on bytes read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zarrfs.errors import UsageError
from zarrfs.format.chunk_grid import Shape

LARGEST_HEADER = 1 << 20
"""Bytes; the headers that programs write have hundreds."""


@dataclass(frozen=True, slots=True)
class Header:
    """An array in another format.

    shape : slowest axis first, whatever the format's own order.
    data_type : as v3 metadata has it.
    """

    shape: Shape
    data_type: Any


class HeaderError(ValueError):
    """The reason why zarrfs cannot tell shape or type from a file; does not name the file."""


def read_start(path: str, size: int = LARGEST_HEADER) -> bytes:
    """At most ``size`` bytes. Raises UsageError if the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def integers(what: str, text: str) -> Shape:
    """Non-negative integers separated by spaces. Raises HeaderError."""
    words = text.split()
    if not words or not all(word.isascii() and word.isdigit() and len(word) < 20 for word in words):
        raise HeaderError(f"{what} is {text[:100]!r}")
    return tuple(map(int, words))


def data_type(what: str, name: str, types: dict[str, str]) -> str:
    """Raises HeaderError for a type that is not in the table."""
    if (found := types.get(" ".join(name.lower().split()))) is None:
        raise HeaderError(f"{what} {name[:100]!r} has no counterpart in Zarr")
    return found


def fields(text: str, separator: str) -> dict[str, str]:
    """Names in lower case, and values, from one pair a line; the last of equal names counts."""
    found = {}
    for line in text.splitlines():
        name, between, value = line.partition(separator)
        if between and not line.startswith("#"):
            found[" ".join(name.lower().split())] = value.strip()
    return found
