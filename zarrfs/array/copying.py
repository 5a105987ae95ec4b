"""Copies elements between arrays of different memory layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.format.codec import Chunk

# Bytes.
_SHORT_ROW = 256


def copy_elements(part: Chunk, target: Chunk) -> None:
    """Copy between arrays of one shape; their byte orders may differ.

    To begin a row costs numpy as much as copying 60 bytes, so short rows are copied as elements.
    """
    movable = part.dtype == target.dtype and not part.dtype.hasobject
    if movable and part.ndim > 1 and part.shape[-1] > 1:
        item = part.itemsize
        row = part.shape[-1] * item
        if row <= _SHORT_ROW and part.strides[-1] == target.strides[-1] == item:
            part, target = part.view(f"V{row}"), target.view(f"V{row}")
    target[...] = part


def plain_type(size: int) -> np.dtype[Any]:
    """A data type of ``size`` bytes through which numpy copies and compares every bit.

    numpy handles plain numbers fastest, and swaps their bytes if byte orders differ.
    """
    return np.dtype(f"<u{size}" if size in (1, 2, 4, 8) else f"V{size}")
