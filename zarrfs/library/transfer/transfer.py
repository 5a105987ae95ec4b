"""Common parts of export and import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from zarrfs.cache.caches import CacheConfig, Caches
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import UnsupportedError, ZarrfsError
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.source import (
    SourceOptions,
    facts_around,
    find_array,
    open_source,
)
from zarrfs.store.base import Store
from zarrfs.views.elements.region import Region, parse_region
from zarrfs.views.elements.window import Window
from zarrfs.views.facts.facts import Around

Progress = Callable[[int, int], object]
"""Told how many bytes of how many are done; called often, and by one thread at a time."""

STANDARD_STREAM = "-"
"""In place of a file's name: standard input or output."""


class TransferError(ZarrfsError):
    """A file could not be read or written. The text names it."""


@dataclass(frozen=True, slots=True)
class TransferConfig:
    """
    path : of the array below the source.
    region : as `parse_region` takes it; empty: the whole array.
    resume : go on with what was begun and not finished.
    source : how the source is opened.
    progress : told how far it is.
    """

    path: str = ""
    region: str = ""
    resume: bool = False
    source: SourceOptions = field(default_factory=SourceOptions)
    progress: Progress = lambda done, total: None


@dataclass(frozen=True, slots=True)
class Opened:
    """An array of elements of fixed size, and the part of it that is transferred.

    memory : bytes for tiles, which are not the caches'.
    path : of the array below the source's store.
    around : the attributes beside those of the array.
    """

    store: Store
    caches: Caches
    array: CachedArray
    metadata: ArrayMetadata
    region: Region
    memory: int
    path: str
    around: Around

    def window(self, grid: ChunkGrid) -> Window:
        return Window(grid, self.region.origin, self.region.shape)

    @property
    def item_size(self) -> int:
        return self.metadata.layout.data_type.item_size


@contextmanager
def opened(source: str, config: TransferConfig, *, writable: bool) -> Iterator[Opened]:
    """Raises ZarrfsError. Changes must be flushed before the end."""
    total = config.source.memory_bytes
    memory = total // 4
    store = open_source(source, config.source)
    try:
        node, metadata = find_array(store, config.path, config.source, writable=writable)
        if not metadata.layout.data_type.fixed_size:
            raise UnsupportedError(
                source, f"elements of {metadata.layout.data_type.name} have no fixed size"
            )
        region = parse_region(config.region, metadata.shape)
        around = facts_around(source, store, node, config.source)
        caches = Caches(store, _cache_config(config, total - memory, writable=writable))
        try:
            array = caches.open(node.path, metadata)
            yield Opened(store, caches, array, metadata, region, memory, node.path, around)
        finally:
            caches.close()
    finally:
        store.close()


def _cache_config(config: TransferConfig, memory: int, *, writable: bool) -> CacheConfig:
    # A chunk that is new in part is complete soon; storing it earlier would be wasted.
    return config.source.cache_config(writable=writable, memory=memory, flush_delay=float("inf"))
