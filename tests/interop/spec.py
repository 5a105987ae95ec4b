"""What an array to be written is, and what every reader must then find."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .data_types import NUMPY, Fill, random_elements
from .documents import Json, array_document

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Spec:
    """One array.

    stored : shape of the chunks that are stored objects: of the shards, where there are any.
    inner : shape of the chunks that can be read on their own, in the array's axis order.
    """

    data_type: str
    fill: Fill
    shape: Shape
    stored: Shape
    inner: Shape
    keys: Json
    codecs: tuple[Json, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(NUMPY[self.data_type])

    @property
    def sharded(self) -> bool:
        return any(codec["name"] == "sharding_indexed" for codec in self.codecs)

    @property
    def document(self) -> Json:
        return array_document(
            shape=self.shape,
            data_type=self.data_type,
            chunk_shape=self.stored,
            keys=self.keys,
            fill_value=self.fill.value,
            codecs=self.codecs,
        )

    def filled(self, shape: Shape) -> Array:
        count = math.prod(shape)
        return np.frombuffer(self.fill.bits * count, self.dtype).reshape(shape).copy()

    def data(self, seed: int, missing: float = 0.3) -> Array:
        """Random elements, with a part of the inner chunks and one stored chunk of fill values."""
        random = np.random.default_rng(seed)
        data = random_elements(self.data_type, self.shape, random)
        for index in grid(self.shape, self.inner):
            if random.random() < missing:
                data[box(index, self.inner)] = self.filled(())
        if len(list(grid(self.shape, self.stored))) > 1 and missing:
            data[box((0,) * len(self.shape), self.stored)] = self.filled(())
        return data

    def chunk(self, data: Array, index: Shape, shape: Shape) -> bytes:
        """A chunk of ``shape`` out of the whole array, what hangs over filled with the fill."""
        chunk = self.filled(shape)
        part = data[box(index, shape)]
        chunk[tuple(slice(0, n) for n in part.shape)] = part
        return chunk.tobytes()


def grid(shape: Sequence[int], chunk: Sequence[int]) -> Iterator[Shape]:
    """Indices of the chunks of an array."""
    return product(*(range(-(-n // c)) for n, c in zip(shape, chunk, strict=True)))


def box(index: Shape, chunk: Shape) -> tuple[slice, ...]:
    return tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunk, strict=True))
