"""The forms in which the journal takes changes that are not stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from zarrfs.format.chunk_grid import Index, Shape

Bytes = NDArray[np.uint8]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """New elements of one chunk.

    elements : of the chunk's full shape; only those in ``mask`` are valid.
    mask : which elements are new, of the same shape.
    parts : by place in the chunk, the bytes in memory of an element that is new in part, and which
        of these bytes are new. The element is not in ``mask``.
    """

    index: Index
    elements: NDArray[Any]
    mask: Bits
    parts: Mapping[Index, tuple[Bytes, Bits]]


class PendingChunk(NamedTuple):
    """Changes of one chunk, and what a later mount needs to judge them.

    path : of the array below the source.
    layout : identifies shape, chunk grid and data type of the array.
    since : when the oldest of the changes was made (`time.monotonic`).
    base : names the state into which this mount itself has brought the stored object; None if it
        has not stored the object since the oldest change.
    old : a hash of the stored elements that the changes replace; None if the store does not answer.
    replaced : whether the array is encoded in another way now, or smaller, so that no mount may
        store them.
    """

    path: str
    layout: str
    change: Change
    since: float
    base: str | None
    old: str | None = None
    replaced: bool = False


class PendingGrowth(NamedTuple):
    """An array that has grown, and whose stored metadata have the old length.

    path : of the array below the source.
    shape : in the stored metadata.
    rows : the new length of the first axis. Its elements are stored already, unless they are
        pending, too.
    """

    path: str
    shape: Shape
    rows: int


Pending: TypeAlias = PendingChunk | PendingGrowth
