"""Reads an array tile by tile, the next ones while one is being used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import ChunkError
from zarrfs.library.transfer.tiles import Tile
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window


class TileElements:
    """The elements of any tile of a window of an array, in a file's order.

    window : in the file's axis order, as tiles are.
    dtype : of memory that tiles are read into; see `Elements`.
    """

    def __init__(self, array: CachedArray, window: Window, config: FlatConfig) -> None:
        """``window`` is in the array's axis order."""
        self.array = array
        self._config = config
        self._reversed = config.order == "F"
        self.window = window.transposed if self._reversed else window
        self._grid = window.grid
        self.dtype = Elements(array, window, config).dtype

    def of(self, tile: Tile) -> Elements:
        """The elements of one tile, last axis of the file fastest."""
        origin = tuple(o + s for o, s in zip(self.window.origin, tile.start, strict=True))
        shape = tile.shape
        if self._reversed:
            origin, shape = origin[::-1], shape[::-1]
        return Elements(self.array, Window(self._grid, origin, shape), self._config)


class _Fetch(NamedTuple):
    """One tile that is being read into ``memory``.

    error : known when it has been read.
    """

    tile: Tile
    memory: NDArray[Any]
    error: Future[ChunkError | None]


def fetch_tiles(
    elements: TileElements,
    plan: Iterable[Tile],
    memory: Callable[[Tile], NDArray[Any]],
    ahead: int,
    *,
    keep: bool,
) -> Iterator[tuple[Tile, NDArray[Any]]]:
    """The tiles of ``plan`` one after another, each with its elements.

    memory : one-dimensional memory of a tile's elements, of the dtype of ``elements``. It
        may be used again for another tile as soon as the one after its own is asked for.
    ahead : how many tiles are read while one is being used.
    keep : whether the chunks should stay in the cache.

    Raises ChunkError. No memory is in use any more when this ends, however it does.
    """
    pending: deque[_Fetch] = deque()
    try:
        for tile in plan:
            fetch = _Fetch(tile, memory(tile), Future())
            read = elements.of(tile).fill if keep else elements.of(tile).scan
            read(fetch.memory, 0, tile.elements, fetch.error.set_result)
            pending.append(fetch)
            if len(pending) > ahead:
                yield _finished(pending)
        while pending:
            yield _finished(pending)
    finally:
        for fetch in pending:
            fetch.error.result()


def _finished(pending: deque[_Fetch]) -> tuple[Tile, NDArray[Any]]:
    error = pending[0].error.result()
    fetch = pending.popleft()
    if error is not None:
        raise error
    return fetch.tile, fetch.memory


class Buffers:
    """Memory for tiles, used again and again: for one that is used and ``ahead`` others."""

    def __init__(self, dtype: np.dtype[Any], elements: int, ahead: int) -> None:
        self._ring = deque(np.empty(elements, dtype) for _ in range(ahead + 1))

    def __call__(self, tile: Tile) -> NDArray[Any]:
        self._ring.rotate(-1)
        return self._ring[0][: tile.elements]
