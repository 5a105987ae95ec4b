"""Counts the stored chunks or shards of an array, with a bounded number of requests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.making.stored_keys import keys_below
from zarrfs.array.node_readers import join
from zarrfs.errors import StoreListingUnsupported
from zarrfs.format.chunk_grid import ChunkGrid, Index, Shape
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.store.base import ObjectInfo, Store

_THREADS = 16
_BATCH = 512
_FEW = 16
_PICTURE = (16, 64)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is asked of a store.

    asked : objects that are asked for one by one, or listed with their sizes.
    listed : names that are looked at.
    """

    asked: int
    listed: int


LOCAL = Limits(asked=100_000, listed=200_000)
REMOTE = Limits(asked=2_000, listed=25_000)


@dataclass(frozen=True, slots=True)
class StoredObjects:
    """Stored chunks, or shards where there are any.

    possible : how many the grid has.
    present : how many were found.
    nbytes : of those whose size was asked for.
    measured : how many these are.
    complete : whether all that there are were found; else ``present`` is at least so many.
    picture : share of present ones over the last two axes of the grid, in a bounded number of
        cells; None where the store cannot tell.
    """

    possible: int
    present: int
    nbytes: int
    measured: int
    complete: bool
    picture: NDArray[np.float64] | None

    def ratio(self, metadata: ArrayMetadata) -> float | None:
        """Decoded bytes of what is stored, as far as the array reaches, for each stored byte.

        None if that is not known.
        """
        known = self.complete and self.measured == self.present and self.nbytes
        if not known or not metadata.layout.data_type.fixed_size:
            return None
        return self.present / self.possible * metadata.nbytes / self.nbytes


def stored_objects(store: Store, path: str, metadata: ArrayMetadata) -> StoredObjects:
    """Blocks. Raises StoreError where the store does not answer.

    A grid with few objects is asked for each; otherwise the store is listed, up to a limit.
    """
    limits = LOCAL if store.traits.near else REMOTE
    grid = metadata.layout.stored
    # A page of a listing has a thousand objects with their sizes.
    listed = None if grid.chunks <= _FEW else store.list_all(path)
    if listed is None and grid.chunks <= limits.asked:
        found = _ask(store, path, metadata, grid.every_index(), limits.asked)
        return _count(grid, found, complete=True)
    index_of = partial(metadata.chunk_keys.index, rank=len(grid.counts))
    if listed is not None:
        entries = list(islice(listed, limits.listed + 1))
        sizes = ((index_of(key), info.size) for key, info in entries)
        inside = ((i, size) for i, size in sizes if i is not None and grid.contains(i))
        return _count(grid, inside, complete=len(entries) <= limits.listed)
    try:
        names = list(islice(keys_below(store, path), limits.listed + 1))
    except StoreListingUnsupported:
        return StoredObjects(grid.chunks, 0, 0, 0, False, None)
    indices = map(index_of, names[: limits.listed])
    chunks = (index for index in indices if index is not None and grid.contains(index))
    found = _ask(store, path, metadata, chunks, limits.asked)
    return _count(grid, found, complete=len(names) <= limits.listed)


def _ask(
    store: Store, path: str, metadata: ArrayMetadata, indices: Iterable[Index], most: int
) -> Iterator[tuple[Index, int | None]]:
    """The indices of stored objects, with their sizes; None if it was not asked for."""

    def ask(index: Index) -> ObjectInfo | None:
        return store.info(join(path, metadata.chunk_keys.key(index)))

    indices = iter(indices)
    with ThreadPoolExecutor(_THREADS) as pool:
        answers = map if store.traits.near else pool.map
        while batch := list(islice(indices, min(_BATCH, most))):
            most -= len(batch)
            infos = zip(batch, answers(ask, batch), strict=True)
            yield from ((index, info.size) for index, info in infos if info is not None)
    yield from ((index, None) for index in indices)


def _count(
    grid: ChunkGrid, found: Iterable[tuple[Index, int | None]], *, complete: bool
) -> StoredObjects:
    present = list(found)
    sizes = [size for _, size in present if size is not None]
    picture = _picture(grid.counts, (index for index, _ in present))
    return StoredObjects(grid.chunks, len(present), sum(sizes), len(sizes), complete, picture)


def _picture(counts: Shape, present: Iterable[Index]) -> NDArray[np.float64]:
    """Shares of the last two axes of a grid; what is before them is counted together."""
    last = tuple(max(1, count) for count in (1, 1, *counts)[-2:])
    shape = tuple(min(count, most) for count, most in zip(last, _PICTURE, strict=True))
    found = np.zeros(shape)
    for index in present:
        each = zip((0, 0, *index)[-2:], shape, last, strict=True)
        found[tuple(i * cells // count for i, cells, count in each)] += 1
    lengths = [
        np.diff([-(-cell * count // cells) for cell in range(cells + 1)]).astype(np.float64)
        for count, cells in zip(last, shape, strict=True)
    ]
    return found / (max(1, math.prod(counts[:-2])) * np.outer(*lengths))
