"""The directories (IFDs) of TIFF and BigTIFF as bytes.

https://www.adobe.io/content/dam/udp/en/open/standards/tiff/TIFF6.pdf, http://bigtiff.org
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

BYTE, ASCII, SHORT, LONG, RATIONAL, DOUBLE, LONG8, IFD8 = 1, 2, 3, 4, 5, 12, 16, 18
"""Types of values."""

Entry: TypeAlias = tuple[int, list[Any]]
"""Type, and values of that type."""


class Encoding(NamedTuple):
    """``tiff`` is packed with ``end``; directory entries contain up to ``inline`` bytes."""

    big: bool
    end: str

    @property
    def inline(self) -> int:
        return 8 if self.big else 4

    @property
    def word(self) -> str:
        """The format character of offsets."""
        return self.end + ("Q" if self.big else "I")

    def directory_size(self, entries: int) -> int:
        return 16 + 20 * entries if self.big else 6 + 12 * entries

    def value_at(self, number: int) -> int:
        """Where the value of entry ``number`` of a directory begins."""
        return 20 + 20 * number if self.big else 10 + 12 * number


class Field(NamedTuple):
    """An entry of a directory: the value itself, or its offset, as the bytes of ``value``."""

    kind: int
    length: int
    value: bytes


def fields(
    encoding: Encoding, header: bytearray, entries: Mapping[int, Entry | Field], start: int = 0
) -> dict[int, Field]:
    """The entries by tag; values that are too long for a field are added to ``header``.

    start : of ``header`` in the file.
    """
    return {
        tag: entry if isinstance(entry, Field) else _field(encoding, header, start, *entry)
        for tag, entry in sorted(entries.items())
    }


def _field(
    encoding: Encoding, header: bytearray, start: int, kind: int, values: list[Any]
) -> Field:
    end, count = encoding.end, len(values)
    if kind in (ASCII, BYTE):
        data = values[0]
        count = len(data)
    elif kind == DOUBLE:
        data = struct.pack(f"{end}{count}d", *values)
    elif kind == RATIONAL:
        data = b"".join(struct.pack(end + "II", *value) for value in values)
    else:
        letter = {SHORT: "H", LONG: "I"}.get(kind, "Q")
        data = struct.pack(f"{end}{count}{letter}", *values)
    if len(data) > encoding.inline:
        header += bytes(-len(header) % 8)
        at = start + len(header)
        header += data
        data = struct.pack(encoding.word, at)
    return Field(kind, count, data.ljust(encoding.inline, b"\0"))


def directory(encoding: Encoding, found: Mapping[int, Field]) -> bytes:
    """A directory, with zeros for the offset of the next one."""
    parts = [struct.pack(encoding.end + ("Q" if encoding.big else "H"), len(found))]
    for tag, (kind, count, value) in sorted(found.items()):
        parts += [struct.pack(encoding.end + "HH", tag, kind), struct.pack(encoding.word, count)]
        parts.append(value)
    return b"".join(parts).ljust(encoding.directory_size(len(found)), b"\0")
