"""``scale_offset``: ``(x - offset) * scale``, in the arithmetic of the array's own type.

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.format.codec import Chunk, ChunkSpec
from zarrfs.format.codecs.elementwise import BoundElementwise, KeepsPlaces, bind_elementwise
from zarrfs.format.data_type import DataType


@dataclass(frozen=True, slots=True)
class ScaleOffsetCodec(KeepsPlaces):
    """Both in the JSON form of the type's fill value; without them, values stay unchanged."""

    offset: Any = 0
    scale: Any = 1

    def bind(self, spec: ChunkSpec) -> BoundElementwise:
        data_type = spec.data_type

        def element(value: Any) -> Chunk:
            return data_type.element(data_type.fill_bytes(value))

        scaling: _Integers | _Floats
        if data_type.dtype.kind in "iu":
            scaling = _Integers(data_type, int(element(self.offset)), int(element(self.scale)))
        elif data_type.dtype.kind == "f" or data_type.dtype.name.startswith(("float", "bfloat")):
            scaling = _Floats(data_type, element(self.offset), element(self.scale))
        else:
            raise ValueError(f"scale_offset cannot scale {data_type.name}")
        return bind_elementwise(spec, data_type, scaling.encode, scaling.decode)


@dataclass(frozen=True, slots=True)
class _Integers:
    """Uses Python's integers if 64 bits cannot hold the intermediate results."""

    data_type: DataType
    offset: int
    scale: int

    def __post_init__(self) -> None:
        if self.scale == 0:
            raise ValueError("scale is 0")

    def _wide(self, elements: Chunk) -> Chunk:
        small = elements.dtype.itemsize < 4
        return elements.astype(np.int64 if small else object)

    def encode(self, elements: Chunk) -> Chunk:
        difference = self._wide(elements) - self.offset
        return self._narrow(self._in_range(difference) * self.scale)

    def decode(self, elements: Chunk) -> Chunk:
        wide = self._wide(elements)
        quotient = wide // self.scale
        if np.any(quotient * self.scale != wide):
            raise ValueError(f"scale_offset: not a multiple of {self.scale}")
        return self._narrow(self._in_range(quotient) + self.offset)

    def _in_range(self, wide: Chunk) -> Chunk:
        low, high = self.data_type.integers
        if wide.size and (wide.min() < low or wide.max() > high):
            raise ValueError(f"scale_offset: a value is out of the range of {self.data_type.name}")
        return wide

    def _narrow(self, wide: Chunk) -> Chunk:
        return self._in_range(wide).astype(self.data_type.dtype)


@dataclass(frozen=True, slots=True)
class _Floats:
    data_type: DataType
    offset: Chunk
    scale: Chunk

    def __post_init__(self) -> None:
        if not self.scale.astype(np.float64):
            raise ValueError("scale is 0")

    def encode(self, elements: Chunk) -> Chunk:
        return self._checked(elements, (elements - self.offset) * self.scale)

    def decode(self, elements: Chunk) -> Chunk:
        return self._checked(elements, elements / self.scale + self.offset)

    def _checked(self, elements: Chunk, result: Chunk) -> Chunk:
        if np.any(np.isfinite(elements) & ~np.isfinite(result)):
            raise ValueError(f"scale_offset: a value is out of the range of {self.data_type.name}")
        return np.asarray(result, self.data_type.dtype)
