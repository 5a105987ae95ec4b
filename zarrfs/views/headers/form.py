"""The result of a format: the bytes around the elements, and how the elements lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from zarrfs import bounds
from zarrfs.views.bits import Masked
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.records import Records
from zarrfs.views.tiles.computed import Computed
from zarrfs.views.tiles.tiling import Tiling

LARGEST_HEADER = 4 << 20
"""Bytes. A format refuses an array for which its header would be larger."""


class Inexpressible(Exception):
    """The format cannot represent the array. The text is the reason, without a full stop."""


def check_size(size: int) -> None:
    """Raises Inexpressible for more bytes than a file can have."""
    if size > bounds.LARGEST_LENGTH:
        raise Inexpressible("would be larger than a file can be (8 EiB)")


class Placed(NamedTuple):
    """The elements of one array in a file.

    place : where its boxes lie, in C order and little-endian; or the byte at which the
        elements begin, one after another as in ``array.bin``; or what the file has in their place.
    """

    path: str
    place: Tiling | Masked | int


@dataclass(frozen=True, slots=True)
class GroupForm:
    """
    header : all bytes that are none of elements.
    placed : the arrays in the order of their bytes.
    size : of the file in bytes. Raises Inexpressible for more than a file can have.
    writable : whether programs may change elements through the file.
    marks : bytes of the header that programs change while they have the file open.
    """

    header: Computed
    placed: Sequence[Placed]
    size: int
    writable: bool = False
    marks: range = range(0)

    def __post_init__(self) -> None:
        check_size(self.size)

    @property
    def element_bytes(self) -> int:
        """Bytes of the elements that lie in boxes, without those beyond the edges."""
        places = [placed.place for placed in self.placed]
        return sum(
            math.prod(place.extents) * place.item_size
            for place in places
            if isinstance(place, Tiling)
        )


@dataclass(frozen=True, slots=True)
class Form:
    """
    header : the bytes before the elements.
    gap : zeros between header and elements.
    layout : of the elements after the header; None: the file has only a header, and the elements
        are in another file.
    trailer : the bytes after the elements.
    flipped : whether the most significant bit of each element is inverted in the file.
    records : the bytes between the elements; None: there are none.
    marks : bytes of the header that programs change while they have the file open.
    boxed : the whole file, if its elements lie in boxes; then nothing else but ``layout`` is given.
    """

    header: bytes
    layout: FlatConfig | None = None
    trailer: bytes = b""
    flipped: bool = False
    marks: range = range(0)
    records: Records | None = None
    boxed: GroupForm | None = None
    gap: int = 0

    @property
    def start(self) -> int:
        """The byte at which the elements begin."""
        return len(self.header) + self.gap

    @property
    def frame(self) -> int:
        """Bytes of the file that are not bytes of elements."""
        if self.boxed is not None:
            return self.boxed.size - self.boxed.element_bytes
        between = 0 if self.records is None else self.records.marks
        return self.start + between + len(self.trailer)


Plan: TypeAlias = Callable[[], Form]
"""Makes the bytes, which may take some milliseconds. It raises nothing."""
