"""Converts elements that zfp does not support to 32- or 64-bit numbers, and back.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp, section
"Compression". Unsigned types of 32 and 64 bits keep their value, as in zarrs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.format.codec import Chunk

_NATIVE = ("i4", "i8", "f4", "f8")
_INT32 = np.dtype("<i4")


@dataclass(frozen=True, slots=True)
class Promotion:
    """``native`` is the type that zfp gets, ``shift`` the bits by which small integers move up."""

    dtype: np.dtype[Any]
    native: np.dtype[Any]
    shift: int = 0

    @property
    def is_native(self) -> bool:
        """Whether zfp gets the elements' own bits (for times, the integers that they count)."""
        return self.dtype == self.native or self.dtype.kind in "mM"

    def promote(self, chunk: Chunk) -> Chunk:
        """Raises ValueError for unsigned values that the signed type cannot hold."""
        if self.is_native:
            return np.ascontiguousarray(chunk).view(self.native)
        if not self.shift:
            if self.native.kind == "i" and chunk.size and chunk.max() > np.iinfo(self.native).max:
                raise ValueError("zfp: a value is too large")
            return chunk.astype(self.native)
        promoted: Chunk = (chunk.astype(_INT32) - self._middle) << self.shift
        return promoted

    def demote(self, chunk: Chunk) -> Chunk:
        if self.is_native:
            return chunk.view(self.dtype)
        if self.native.kind == "f":
            return chunk.astype(self.dtype)
        limits = np.iinfo(self.dtype)
        if not self.shift:
            return np.maximum(chunk, 0).astype(self.dtype)
        values: Chunk = (chunk >> self.shift) + self._middle
        return np.clip(values, limits.min, limits.max).astype(self.dtype)

    @property
    def _middle(self) -> int:
        return 1 << 8 * self.dtype.itemsize - 1 if self.dtype.kind == "u" else 0


def promotion_of(dtype: np.dtype[Any]) -> Promotion | None:
    """The promotion for elements of ``dtype``; None if zfp cannot encode them as numbers."""
    kind, size = dtype.kind, dtype.itemsize
    if dtype.str[1:] in _NATIVE:
        return Promotion(dtype, dtype)
    if kind in "mM":
        return Promotion(dtype, np.dtype("<i8"))
    if kind == "f" or dtype.name == "bfloat16":
        return Promotion(dtype, np.dtype("<f4")) if size == 2 else None
    if kind in "iu":
        if size > 2:
            return Promotion(dtype, np.dtype(f"<i{size}"))
        return Promotion(dtype, _INT32, 31 - 8 * size)
    return None
