"""TensorStore, as it is unless somebody configures it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorstore as ts


def _open(path: str, *, write: bool = False, cache: int | None = None) -> Any:
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
    context = ts.Context({} if cache is None else {"cache_pool": {"total_bytes_limit": cache}})
    return ts.open(spec, context=context, open=True, read=True, write=write).result()


def _boxes(shape: tuple[int, ...], elements: np.ndarray, length: int) -> Iterator[Any]:
    """The box of the ``length`` elements that lie one after the other from each of ``elements`` on.

    length : whole rows of all axes but one.
    """
    axis, inner = len(shape) - 1, 1
    while axis > 0 and inner * shape[axis] <= length:
        inner *= shape[axis]
        axis -= 1
    for element in elements.tolist():
        *outer, first = np.unravel_index(element // inner, shape[: axis + 1])
        yield (*map(int, outer), slice(int(first), int(first) + length // inner))


def read_all(path: str) -> Callable[[], None]:
    """The whole array into memory."""

    def run() -> None:
        _open(path).read().result()

    return run


def read_at(path: str, offsets: str, size: int, cache: int) -> Callable[[], None]:
    """``size`` bytes at each byte offset, one after the other, with a cache."""
    places = np.fromfile(offsets, np.int64)

    def run() -> None:
        array = _open(path, cache=cache)
        item = array.dtype.numpy_dtype.itemsize
        for box in _boxes(array.shape, places // item, size // item):
            array[box].read().result()

    return run


def read_planes(path: str, axis: int, positions: list[int], cache: int) -> Callable[[], None]:
    """Planes across an axis, one after the other, with a cache."""

    def run() -> None:
        array = _open(path, cache=cache)
        for position in positions:
            array[(slice(None),) * axis + (position,)].read().result()

    return run


def expect(path: str, data: str) -> Callable[[], None]:
    """Raises `ValueError` unless the array holds the elements of the file ``data``."""

    def run() -> None:
        array = _open(path)
        there = np.ascontiguousarray(array.read().result()).reshape(-1)
        if not np.array_equal(there.view(np.uint8), np.fromfile(data, np.uint8)):
            raise ValueError(f"{path} does not hold what {data} holds")

    return run


def write_all(path: str, data: str) -> Callable[[], None]:
    """The whole array, durably."""
    array = _open(path, write=True)
    source = np.fromfile(data, array.dtype.numpy_dtype).reshape(array.shape)

    def run() -> None:
        _open(path, write=True).write(source).result()

    return run


def write_at(path: str, offsets: str, size: int, data: str) -> Callable[[], None]:
    """The first ``size`` bytes of ``data`` to each byte offset, in one transaction."""
    places = np.fromfile(offsets, np.int64)

    def run() -> None:
        array = _open(path, write=True)
        dtype = array.dtype.numpy_dtype
        values = np.fromfile(data, dtype, size // dtype.itemsize)
        with ts.Transaction() as transaction:
            view = array.with_transaction(transaction)
            for box in _boxes(array.shape, places // dtype.itemsize, values.size):
                part = view[box]
                part.write(values.reshape(part.shape)).result()

    return run
