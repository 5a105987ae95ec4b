"""The rows of one Parquet file of references, packed into one buffer.

The process that reads the Parquet file packs them; this process checks and uses the packed form. In
it, each URL is there once, and no Python object is kept for each row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from struct import Struct
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Reference: TypeAlias = bytes | list[str | int]
"""Inlined bytes; or a URL, or a URL with offset and length in bytes."""

_HEAD = Struct("<3Q")
_NONE = -1
BYTES_PER_ROW = 28


def packed(
    urls: Sequence[str | None],
    offsets: NDArray[np.int64],
    sizes: NDArray[np.int64],
    inlined: Sequence[bytes | None],
) -> bytes:
    """The packed form of rows; all arguments have one item for each row."""
    places: dict[str, int] = {}
    numbers = [_NONE if url is None else places.setdefault(url, len(places)) for url in urls]
    lengths = [_NONE if data is None else len(data) for data in inlined]
    text = json.dumps(list(places)).encode()
    data = b"".join(data for data in inlined if data)
    return b"".join(
        (
            _HEAD.pack(len(numbers), len(text), len(data)),
            np.asarray(offsets, "<i8").tobytes(),
            np.asarray(sizes, "<i8").tobytes(),
            np.asarray(lengths, "<i8").tobytes(),
            np.asarray(numbers, "<i4").tobytes(),
            text,
            data,
        )
    )


class Record:
    """References by row. Raises ValueError for a packed form that is none."""

    def __init__(self, form: bytes) -> None:
        if len(form) < _HEAD.size:
            raise ValueError("no rows")
        rows, text, data = _HEAD.unpack_from(form)
        if len(form) != _HEAD.size + BYTES_PER_ROW * rows + text + data:
            raise ValueError("rows of another size")
        at = _HEAD.size
        self._offsets = np.frombuffer(form, "<i8", rows, at)
        self._sizes = np.frombuffer(form, "<i8", rows, at + 8 * rows)
        self._lengths = np.frombuffer(form, "<i8", rows, at + 16 * rows)
        self._urls = np.frombuffer(form, "<i4", rows, at + 24 * rows)
        at += BYTES_PER_ROW * rows
        self._places: list[str] = json.loads(form[at : at + text])
        self._ends = np.cumsum(np.maximum(self._lengths, 0))
        self._data = memoryview(form)[at + text :]
        self.size = 2 * len(form)
        """Bytes in memory, reckoned."""
        if not all(isinstance(place, str) for place in self._places):
            raise ValueError("URLs that are not text")
        if rows and (self._ends[-1] != data or self._urls.max() >= len(self._places)):
            raise ValueError("rows that do not fit together")

    def __len__(self) -> int:
        return len(self._urls)

    def find(self, row: int) -> Reference | None:
        """The reference of a row; None if it has none."""
        if (length := int(self._lengths[row])) >= 0:
            end = int(self._ends[row])
            return bytes(self._data[end - length : end])
        if (number := int(self._urls[row])) < 0:
            return None
        offset, size = int(self._offsets[row]), int(self._sizes[row])
        # Zeros name the whole object.
        return [self._places[number], offset, size] if offset or size else [self._places[number]]

    def rows(self) -> NDArray[np.intp]:
        """The numbers of all rows that have a reference."""
        return np.flatnonzero((self._lengths >= 0) | (self._urls >= 0))
