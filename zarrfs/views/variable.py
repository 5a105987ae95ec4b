"""Elements of any length as files: JSON lines, and Arrow's pair of offsets and values.

The position of an element in such a file is known only after all elements before it have been
measured. One pass measures them once. It keeps only the position of every thousandth element or so;
the rest is computed again for each read.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import ChunkError
from zarrfs.views.bytes_view import ReadOnlyView
from zarrfs.views.elements.elements import Elements
from zarrfs.views.view import Answer, Data

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


class Measure(NamedTuple):
    """The byte offset of every ``_ELEMENTS_A_STEP``-th element, and at last the end of the file."""

    starts: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.starts[-1]


class Measures(NamedTuple):
    """The measures of the two files whose size depends on the elements."""

    lines: Measure
    values: Measure


def measure(elements: Elements) -> Measures:
    """Go through all elements once. Blocks. Raises ChunkError."""
    lines, values = [0], [0]
    for first in range(0, elements.count, _ELEMENTS_A_STEP):
        batch = elements.wait_for(first, min(first + _ELEMENTS_A_STEP, elements.count))
        lines.append(lines[-1] + sum(len(to_line(element)) for element in batch))
        values.append(values[-1] + sum(len(to_value(element)) for element in batch))
    return Measures(Measure(tuple(lines)), Measure(tuple(values)))


class ConcatenatedView(ReadOnlyView):
    """Elements one after another, each converted to bytes."""

    def __init__(
        self, elements: Elements, measure: Measure, to_bytes: Callable[[Any], bytes]
    ) -> None:
        self._elements = elements
        self._measure = measure
        self._to_bytes = to_bytes
        self.size = measure.size

    def read_now(self, offset: int, size: int) -> Data | None:
        # Converting elements to bytes takes too long for the event loop.
        return b"" if offset >= self.size or not size else None

    def read(self, offset: int, size: int, answer: Answer) -> None:
        starts = self._measure.starts
        stop = min(offset + size, self.size)
        first_step = bisect_right(starts, offset) - 1
        last_step = bisect_right(starts, stop - 1)
        begin = starts[first_step]

        def cut(batch: NDArray[Any] | ChunkError) -> None:
            if isinstance(batch, ChunkError):
                answer(batch)
                return
            data = _join(self._to_bytes, batch)
            if len(data) != starts[last_step] - begin:
                answer(ChunkError(self._elements.array.array.path, "changed while it was read"))
            else:
                answer(data[offset - begin : stop - begin])

        first = first_step * _ELEMENTS_A_STEP
        last = min(last_step * _ELEMENTS_A_STEP, self._elements.count)
        array = self._elements.array
        array.run(lambda: self._elements.fetch(first, last, cut), ahead=False)


class OffsetsView(ReadOnlyView):
    """The offset of each element among the values, and at last their end: uint64 each."""

    def __init__(
        self, elements: Elements, measure: Measure, byteorder: Literal["little", "big"]
    ) -> None:
        self._elements = elements
        self._measure = measure
        self._dtype = np.dtype("<u8" if byteorder == "little" else ">u8")
        self.size = offsets_size(elements)

    def read_now(self, offset: int, size: int) -> Data | None:
        return b"" if offset >= self.size or not size else None

    def read(self, offset: int, size: int, answer: Answer) -> None:
        stop = min(offset + size, self.size)
        first_step = offset // 8 // _ELEMENTS_A_STEP
        first = first_step * _ELEMENTS_A_STEP
        last = min(-(-stop // 8), self._elements.count)
        base = self._measure.starts[first_step]

        def cut(batch: NDArray[Any] | ChunkError) -> None:
            if isinstance(batch, ChunkError):
                answer(batch)
                return
            lengths = (len(to_value(element)) for element in batch)
            offsets = np.fromiter(accumulate(lengths, initial=base), self._dtype)
            answer(offsets.tobytes()[offset - 8 * first : stop - 8 * first])

        array = self._elements.array
        array.run(lambda: self._elements.fetch(first, last, cut), ahead=False)


def offsets_size(elements: Elements) -> int:
    """Bytes of the file of offsets: one offset more than there are elements."""
    return 8 * (elements.count + 1)


def _join(to_bytes: Callable[[Any], bytes], batch: Iterable[Any]) -> bytes:
    return b"".join(map(to_bytes, batch))
