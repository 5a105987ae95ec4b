"""What a data type is: how an element looks in memory and in metadata.

Elements are little-endian in memory and in every flat view, whatever their
stored byte order; sub-byte types take one canonical byte. A fill value is the
bytes of one such element, so that comparing and writing it is bitwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class FillParser(Protocol):
    """Turns the fill value of a metadata document into the bytes of one element.

    Raises ValueError (with a reason) for a value the data type cannot hold.
    """

    def __call__(self, value: Any, dtype: np.dtype[Any]) -> bytes: ...


class ElementCheck(Protocol):
    """Raises `zarrfs.errors.DecodeError` for decoded elements that are no values of the type."""

    def __call__(self, elements: NDArray[Any]) -> None: ...


@dataclass(frozen=True)
class DataType:
    """A fixed-size element type.

    name : as in Zarr v3 metadata.
    dtype : numpy type of one element in memory, little-endian.
    parse_fill : reads the JSON forms of the fill value.
    has_byte_order : False where the order of an element's bytes is fixed.
    check : validates decoded elements, where not every bit pattern is a value.
    """

    name: str
    dtype: np.dtype[Any]
    parse_fill: FillParser
    has_byte_order: bool = True
    check: ElementCheck | None = None

    @property
    def item_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def stored_dtype(self, *, big_endian: bool) -> np.dtype[Any]:
        """numpy type of an element in the given byte order."""
        if big_endian and self.has_byte_order:
            return self.dtype.newbyteorder(">")
        return self.dtype

    def fill_bytes(self, value: Any) -> bytes:
        """The bytes of the fill value that metadata gives as ``value``.

        Raises ValueError with a reason.
        """
        fill = self.parse_fill(value, self.dtype)
        if len(fill) != self.item_size:
            raise ValueError(f"has {len(fill)} bytes, {self.name} has {self.item_size}")
        return fill

    def element(self, data: bytes) -> NDArray[Any]:
        """A 0-dimensional array of the element whose bytes are ``data``."""
        return np.frombuffer(data, self.dtype, 1).reshape(())
