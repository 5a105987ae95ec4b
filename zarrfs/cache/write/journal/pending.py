"""What the journal takes in: changes that are not stored."""

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

    elements : of the chunk's full shape; only those in ``mask`` mean something.
    mask : which elements are new, of the same shape.
    parts : by place in the chunk, the bytes in memory of an element that is new in part,
        and which of these bytes are new. Its element is not in ``mask``.
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
    base : names the state into which this mount itself has brought the stored object; None
        where it has not stored the object since the oldest change.
    old : a hash of what the store has now in place of the changes; None where the store
        does not tell.
    """

    path: str
    layout: str
    change: Change
    since: float
    base: str | None
    old: str | None = None


class PendingGrowth(NamedTuple):
    """An array that has grown, and whose metadata do not say so yet.

    path : of the array below the source.
    shape : that the metadata say.
    rows : how long the first axis is to become; its elements are stored already, as far as
        they are not pending themselves.
    """

    path: str
    shape: Shape
    rows: int


Pending: TypeAlias = PendingChunk | PendingGrowth
