"""Elements of any length as files: JSON lines, and Arrow's pair of offsets and values.

The position of an element in such a file is known only after all elements before it have been
measured. One pass measures them once. It keeps only the position of every thousandth element or so;
the rest is computed again for each read.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import ChunkError
from zarrfs.format.data_type import DataType
from zarrfs.views.bytes_view import ReadOnlyView
from zarrfs.views.elements.elements import Elements
from zarrfs.views.view import Answer, Data, converting

_ELEMENTS_A_STEP = 1024


def to_line(element: Any) -> bytes:
    """One JSON value and a newline; bytes as base64, as in Zarr's own metadata."""
    if isinstance(element, bytes):
        element = base64.b64encode(element).decode()
    try:
        return json.dumps(element, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(element).encode() + b"\n"


def to_value(element: Any) -> bytes:
    """The bytes of an element: UTF-8 of a string, JSON of anything but strings and bytes."""
    if isinstance(element, bytes):
        return element
    if isinstance(element, str):
        return element.encode("utf-8", "surrogatepass")
    return json.dumps(element, ensure_ascii=False).encode()


Measure: TypeAlias = tuple[int, ...]
"""The byte offset of every ``_ELEMENTS_A_STEP``-th element, and at last the end of the file."""


class Measures(NamedTuple):
    """The measures of the two files whose size depends on the elements."""

    lines: Measure
    values: Measure


def read_texts(
    elements: Elements, data_type: DataType, most: int, most_bytes: int
) -> list[bytes] | None:
    """All elements in UTF-8, if they are few texts without zeros; else None. Blocks."""
    if elements.count > most or (data_type.fixed_size and data_type.dtype.kind not in "US"):
        return None
    try:
        found = elements.wait_for(0, elements.count)
        found = found.view(data_type.dtype) if data_type.fixed_size else found
        found = np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found
        texts = [text.encode() for text in found if isinstance(text, str)]
    except (ChunkError, ValueError):  # also numbers that are no characters
        return None
    whole = len(texts) == elements.count and sum(map(len, texts)) <= most_bytes
    return texts if whole and not any(b"\0" in text for text in texts) else None


def measure(elements: Elements) -> Measures:
    """Go through all elements once. Blocks. Raises ChunkError."""
    lines, values = [0], [0]
    for first in range(0, elements.count, _ELEMENTS_A_STEP):
        batch = elements.wait_for(first, min(first + _ELEMENTS_A_STEP, elements.count))
        lines.append(lines[-1] + sum(len(to_line(element)) for element in batch))
        values.append(values[-1] + sum(len(to_value(element)) for element in batch))
    return Measures(tuple(lines), tuple(values))


class _MeasuredView(ReadOnlyView):
    """The common part of files that are made from the elements in batches.

    Converting elements to bytes takes too long for the event loop.
    """

    def __init__(self, elements: Elements, measure: Measure, size: int) -> None:
        self._elements = elements
        self._starts = measure
        self.size = size

    def read_now(self, offset: int, size: int) -> Data | None:
        return b"" if offset >= self.size or not size else None

    def _fetch(
        self,
        first: int,
        last: int,
        answer: Answer,
        convert: Callable[[NDArray[Any]], Data | ChunkError],
    ) -> None:
        """Answer with the bytes of the elements ``first`` to ``last`` (exclusive) that exist."""
        last = min(last, self._elements.count)
        fetch = partial(self._elements.fetch, first, last, converting(answer, convert))
        self._elements.array.in_thread(fetch, answer)


class ConcatenatedView(_MeasuredView):
    """Elements one after another, each converted to bytes."""

    def __init__(
        self, elements: Elements, measure: Measure, to_bytes: Callable[[Any], bytes]
    ) -> None:
        super().__init__(elements, measure, measure[-1])
        self._to_bytes = to_bytes

    def read(self, offset: int, size: int, answer: Answer) -> None:
        starts = self._starts
        stop = min(offset + size, self.size)
        first_step = bisect_right(starts, offset) - 1
        last_step = bisect_right(starts, stop - 1)
        begin = starts[first_step]

        def cut(batch: NDArray[Any]) -> Data | ChunkError:
            data = b"".join(map(self._to_bytes, batch))
            if len(data) != starts[last_step] - begin:
                return ChunkError(self._elements.array.array.path, "changed while it was read")
            return data[offset - begin : stop - begin]

        self._fetch(first_step * _ELEMENTS_A_STEP, last_step * _ELEMENTS_A_STEP, answer, cut)


class OffsetsView(_MeasuredView):
    """The offset of each element among the values, and at last their end: uint64 each."""

    def __init__(
        self, elements: Elements, measure: Measure, byteorder: Literal["little", "big"]
    ) -> None:
        super().__init__(elements, measure, offsets_size(elements))
        self._dtype = np.dtype("<u8" if byteorder == "little" else ">u8")

    def read(self, offset: int, size: int, answer: Answer) -> None:
        stop = min(offset + size, self.size)
        first_step = offset // 8 // _ELEMENTS_A_STEP
        first = first_step * _ELEMENTS_A_STEP

        def cut(batch: NDArray[Any]) -> Data:
            lengths = (len(to_value(element)) for element in batch)
            ends = accumulate(lengths, initial=self._starts[first_step])
            offsets = np.fromiter(ends, self._dtype)
            return offsets.tobytes()[offset - 8 * first : stop - 8 * first]

        self._fetch(first, -(-stop // 8), answer, cut)


def offsets_size(elements: Elements) -> int:
    """Bytes of the file of offsets: one offset more than there are elements."""
    return 8 * (elements.count + 1)
