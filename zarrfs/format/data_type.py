"""Data types: the form of an element in memory and in metadata.

Elements are little-endian in memory and in every flat view, whatever their stored byte order.
Types of less than a byte take one canonical byte. A fill value is the bytes of one such element, so
that comparing and writing it is bitwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FillParser = Callable[[Any, np.dtype[Any]], bytes]
"""Turns the fill value of a metadata document into the bytes of one element.

Raises ValueError (with a reason) for a value that the data type cannot hold.
"""

ElementCheck = Callable[[NDArray[Any]], None]
"""Raises `zarrfs.errors.DecodeError` for decoded elements that are no values of the type."""

Canonical = Callable[[NDArray[Any]], NDArray[Any]]
"""Gives elements whose stored form has arbitrary bits their canonical form in memory."""


@dataclass(frozen=True)
class DataType:
    """An element type.

    name : as in Zarr v3 metadata.
    dtype : numpy type of one element in memory, little-endian.
    parse_fill : reads the JSON forms of the fill value.
    has_byte_order : False if the order of an element's bytes is fixed.
    check : validates decoded elements; None if every bit pattern is a value.
    canonical : converts to the canonical form if several stored forms mean the same element.
    bits : significant bits of an element (of each part of a complex one), if they are fewer than
        its bytes have.
    words : numpy type of the same bytes, divided into the parts that a byte order reverses, if
        numpy cannot reverse those of ``dtype``.
    """

    name: str
    dtype: np.dtype[Any]
    parse_fill: FillParser
    has_byte_order: bool = True
    check: ElementCheck | None = None
    canonical: Canonical | None = None
    bits: int | None = None
    words: np.dtype[Any] | None = None

    @property
    def fixed_size(self) -> bool:
        """Whether every element has ``item_size`` bytes; if not, there is no flat view."""
        return True

    @property
    def item_size(self) -> int:
        """Bytes of one element in memory (of a reference to it, if its size is not fixed)."""
        return self.dtype.itemsize

    def stored_dtype(self, *, big_endian: bool) -> np.dtype[Any]:
        """numpy type of an element in the given byte order.

        Equal to ``dtype`` if the bytes are the same.
        """
        if big_endian and self.has_byte_order:
            words = self.dtype if self.words is None else self.words
            return words.newbyteorder(">")
        return self.dtype

    @property
    def integers(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        return integer_limits(self.bits or 8 * self.item_size, signed=self.dtype.kind == "i")

    def fill_bytes(self, value: Any) -> bytes:
        """The bytes of the fill value that metadata give as ``value``.

        Raises ValueError with a reason.
        """
        fill = self.parse_fill(value, self.dtype)
        if len(fill) != self.item_size:
            raise ValueError(f"has {len(fill)} bytes, {self.name} has {self.item_size}")
        if self.canonical is not None:
            return self.canonical(np.frombuffer(fill, self.dtype)).tobytes()
        return fill

    def element(self, data: bytes) -> NDArray[Any]:
        """A 0-dimensional array of the element whose bytes are ``data``."""
        return np.frombuffer(data, self.dtype, 1).reshape(())


def integer_limits(bits: int, *, signed: bool) -> tuple[int, int]:
    """The least and the greatest integer of so many bits."""
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def from_big_words(words: NDArray[Any], data_type: DataType) -> NDArray[Any]:
    """Elements in memory, from an array of ``stored_dtype(big_endian=True)``."""
    return words.astype(words.dtype.newbyteorder("<")).view(data_type.dtype)


def to_big_words(elements: NDArray[Any], stored: np.dtype[Any]) -> NDArray[Any]:
    """The opposite of `from_big_words`; ``elements`` must be contiguous."""
    return elements.view(stored.newbyteorder("<")).astype(stored)
