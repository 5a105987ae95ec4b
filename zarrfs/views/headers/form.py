"""The result of a format: the bytes around the elements, and how the elements lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.records import Records

LARGEST_HEADER = 4 << 20
"""Bytes. A format refuses an array for which its header would be larger."""


class Inexpressible(Exception):
    """The format cannot represent the array. The text is the reason, without a full stop."""


@dataclass(frozen=True, slots=True)
class Form:
    """
    header : the bytes before the elements.
    layout : of the elements after the header; None: the file has only a header, and the elements
        are in another file.
    trailer : the bytes after the elements.
    flipped : whether the most significant bit of each element is inverted in the file.
    records : the bytes between the elements; None: there are none.
    marks : bytes of the header that programs change while they have the file open.
    """

    header: bytes
    layout: FlatConfig | None = None
    trailer: bytes = b""
    flipped: bool = False
    marks: range = range(0)
    records: Records | None = None

    @property
    def frame(self) -> int:
        """Bytes of the file that are not bytes of elements."""
        between = 0 if self.records is None else self.records.marks
        return len(self.header) + between + len(self.trailer)


Plan: TypeAlias = Callable[[], Form]
"""Makes the bytes, which may take some milliseconds. It raises nothing."""
