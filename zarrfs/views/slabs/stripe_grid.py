"""The stripes of one row of chunks, one after the other in a scratch file.

`staged_rows` says what rows, stripes and pieces are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.block import Block

Numbers = NDArray[np.int64]


class Part(NamedTuple):
    """The part of a piece that lies in one stripe.

    stripe : the number of the stripe.
    place : of the part's first element in the row's file, in elements.
    where : the part's place within the piece.
    """

    stripe: int
    place: int
    where: tuple[slice, ...]


class StripeGrid:
    """Where the stripes of a row lie.

    begins : of each stripe in the row's file, in elements; (stripes,).
    """

    def __init__(self, axes: int, blocks: Sequence[Block]) -> None:
        """
        axes : of the row, how many.
        blocks : the stripes; the targets of their runs are places in the row.
        """
        low = [[runs[0].target.start for runs in block.runs] for block in blocks]
        high = [[runs[-1].target.stop for runs in block.runs] for block in blocks]
        self._low = np.array(low, np.int64).reshape(len(blocks), axes)
        self._high = np.array(high, np.int64).reshape(len(blocks), axes)
        # Elements of a stripe behind each axis, and from the first axis on.
        behind = np.cumprod((self._high - self._low)[:, ::-1], axis=1)[:, ::-1]
        self._steps: Numbers = np.append(behind[:, 1:], np.ones_like(behind[:, :1]), axis=1)
        self.begins: Numbers = np.cumsum(behind[:, 0]) - behind[:, 0]

    def parts(self, first: Sequence[int], shape: Sequence[int]) -> Iterator[Part]:
        """The parts of a piece, each of which is contiguous in the file.

        first, shape : of the piece within the row.
        """
        low = np.maximum(self._low, first)
        high = np.minimum(self._high, np.add(first, shape))
        (crossed,) = np.nonzero((low < high).all(axis=1))
        low, high = low[crossed], high[crossed]
        places = ((low - self._low[crossed]) * self._steps[crossed]).sum(axis=1)
        places += self.begins[crossed]
        starts, stops = (low - first).tolist(), (high - first).tolist()
        for number, place, start, stop in zip(
            crossed.tolist(), places.tolist(), starts, stops, strict=True
        ):
            yield Part(number, place, tuple(map(slice, start, stop)))
