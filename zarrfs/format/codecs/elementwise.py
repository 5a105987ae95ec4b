"""Base of array -> array codecs that convert each element on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.data_type import DataType


class KeepsPlaces:
    """Base of codecs that keep every element in its place."""

    __slots__ = ()

    def axis_order(self, rank: int) -> tuple[int, ...]:
        return tuple(range(rank))


ElementFunction = Callable[[Chunk], Chunk]
"""Maps elements to as many elements of another array; raises ValueError if it cannot."""


@dataclass(frozen=True, slots=True)
class BoundElementwise:
    """Applies one function for encoding and another for decoding."""

    encoded: ChunkSpec
    to_encoded: ElementFunction
    to_decoded: ElementFunction

    def decode(self, chunk: Chunk) -> Chunk:
        try:
            with np.errstate(all="ignore"):
                return self.to_decoded(chunk)
        except ValueError as error:
            raise DecodeError(reason_of(error)) from error

    def encode(self, chunk: Chunk) -> Chunk:
        with np.errstate(all="ignore"):
            return self.to_encoded(chunk)


def bind_elementwise(
    spec: ChunkSpec,
    encoded_type: DataType,
    to_encoded: ElementFunction,
    to_decoded: ElementFunction,
) -> BoundElementwise:
    """Bind both functions. The fill value is encoded too. Raises ValueError if it cannot be."""
    fill = spec.data_type.element(spec.fill)
    with np.errstate(all="ignore"):
        encoded = np.asarray(to_encoded(fill.reshape(1)), encoded_type.dtype)
    return BoundElementwise(
        ChunkSpec(spec.shape, encoded_type, encoded.tobytes()), to_encoded, to_decoded
    )


def float_parts(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The float of 16 bits or more that an element, or each part of a complex element, is.

    None if it is neither.
    """
    if dtype.name in ("float16", "float32", "float64", "bfloat16"):
        return dtype
    if dtype.kind == "c":
        return np.dtype(f"<f{dtype.itemsize // 2}")
    if dtype.names == ("real", "imag"):
        part: np.dtype[Any] = dtype["real"]
        return float_parts(part)
    return None
