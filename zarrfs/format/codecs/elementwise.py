"""What array -> array codecs that treat every element on its own have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.data_type import DataType


class ElementFunction(Protocol):
    """Maps elements to as many elements of another array; raises ValueError where it cannot."""

    def __call__(self, elements: Chunk) -> Chunk: ...


@dataclass(frozen=True, slots=True)
class BoundElementwise:
    """Runs one function on the way in and another on the way out."""

    encoded: ChunkSpec
    to_encoded: ElementFunction
    to_decoded: ElementFunction

    def decode(self, chunk: Chunk) -> Chunk:
        try:
            with np.errstate(all="ignore"):
                return self.to_decoded(chunk)
        except ValueError as error:
            raise DecodeError(str(error)) from error

    def encode(self, chunk: Chunk) -> Chunk:
        with np.errstate(all="ignore"):
            return self.to_encoded(chunk)


def bind_elementwise(
    spec: ChunkSpec,
    encoded_type: DataType,
    to_encoded: ElementFunction,
    to_decoded: ElementFunction,
) -> BoundElementwise:
    """The fill value goes the way that every element goes. Raises ValueError if it cannot."""
    fill = spec.data_type.element(spec.fill)
    with np.errstate(all="ignore"):
        encoded = np.asarray(to_encoded(fill.reshape(1)), encoded_type.dtype)
    return BoundElementwise(
        ChunkSpec(spec.shape, encoded_type, encoded.tobytes()), to_encoded, to_decoded
    )


def same_axes(rank: int) -> tuple[int, ...]:
    """The axis order of a codec that leaves every element where it is."""
    return tuple(range(rank))


def float_parts(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """The float of 16 bits or more that an element, or each part of a complex one, is.

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
