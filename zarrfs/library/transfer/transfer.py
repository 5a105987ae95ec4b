"""Common parts of export and import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from zarrfs.cache.caches import Caches
from zarrfs.cache.read.cached_array import CachedArray
from zarrfs.errors import UnsupportedError, ZarrfsError
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.engine import Engine, EngineConfig, batches, per_task, run
from zarrfs.library.source import (
    SourceOptions,
    facts_around,
    find_array,
    open_source,
)
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.library.transfer.tiles import Tile, TilePlan
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


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Converts an OSError to a TransferError."""
    try:
        yield
    except OSError as error:
        raise TransferError(f"{file}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class TransferConfig:
    """
    path : of the array below the source.
    region : as `parse_region` takes it; empty: the whole array.
    resume : go on with what was begun and not finished.
    source : how the source is opened.
    engine : who does it.
    progress : told how far it is.
    """

    path: str = ""
    region: str = ""
    resume: bool = False
    source: SourceOptions = field(default_factory=SourceOptions)
    engine: EngineConfig = field(default_factory=EngineConfig)
    progress: Progress = lambda done, total: None


class TileTask(NamedTuple):
    """Some tiles of a transfer as a value: any process that reaches file and array can perform it.

    array, file : their names; of an export, the file is the one that is not whole yet.
    start : where the elements begin in the file, in bytes.
    numbers : of the tiles in their plan.
    """

    array: str
    file: str
    path: str
    region: str
    options: SourceOptions
    form: FlatForm
    start: int
    numbers: tuple[int, ...]
    tiles: tuple[Tile, ...]

    @property
    def config(self) -> TransferConfig:
        return TransferConfig(self.path, self.region, source=self.options)

    @property
    def elements(self) -> int:
        return sum(tile.elements for tile in self.tiles)


def perform_elsewhere(
    workers: Engine,
    perform: Callable[[TileTask], None],
    whole: TileTask,
    plan: TilePlan,
    config: TransferConfig,
    *,
    item: int,
    done: int = 0,
    performed: Callable[[tuple[int, ...]], object] = lambda numbers: None,
) -> None:
    """Have other processes perform the tiles of a plan, some in each task. Raises ZarrfsError.

    whole : a task without tiles.
    item : bytes of an element.
    done : the first tiles are left out.
    performed : told of the numbers of finished tiles.
    """
    total = whole.start + plan.window.elements * item
    position = whole.start + sum(tile.elements for tile in islice(plan, done)) * item
    largest = Tile(plan.lengths, plan.lengths).elements * item
    tasks = (
        whole._replace(numbers=tuple(n for n, _ in some), tiles=tuple(tile for _, tile in some))
        for some in batches(islice(enumerate(plan), done, None), per_task(largest))
    )
    for part, error in run(workers.executor, workers.at_once, perform, tasks):
        if isinstance(error, ZarrfsError):
            raise error
        performed(part.numbers)
        position += part.elements * item
        config.progress(position, total)


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
    with closing(open_source(source, config.source)) as store:
        node, metadata = find_array(store, config.path, config.source, writable=writable)
        if not metadata.layout.data_type.fixed_size:
            raise UnsupportedError(
                source, f"elements of {metadata.layout.data_type.name} have no fixed size"
            )
        region = parse_region(config.region, metadata.shape)
        around = facts_around(source, store, node, config.source)
        # A chunk that is new in part is complete soon; storing it earlier would be wasted.
        cache_config = config.source.cache_config(
            writable=writable, memory=total - memory, flush_delay=float("inf")
        )
        with closing(Caches(store, cache_config)) as caches:
            array = caches.open(node.path, metadata)
            yield Opened(store, caches, array, metadata, region, memory, node.path, around)
