"""From an array to a file or a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.node_readers import join
from zarrfs.errors import UsageError
from zarrfs.library.engine import Finished, engine, for_workers
from zarrfs.library.source import source_name
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.library.transfer.group_export import view_of, write_view
from zarrfs.library.transfer.output_file import Output, output, part_of
from zarrfs.library.transfer.tiles import Tile, TilePlan, fetch_tiles
from zarrfs.library.transfer.transfer import (
    Opened,
    TileTask,
    TransferConfig,
    opened,
    perform_elsewhere,
)
from zarrfs.views.elements.elements import Elements
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.form import Form

_AHEAD = 3


def export_array(
    source: str, target: str, form: FlatForm, config: TransferConfig, *, overwrite: bool = False
) -> int:
    """Write the elements of an array, or of a region of it, to a file. Blocks.

    source : as for `zarrfs.open_array`.
    target : a file, which appears when it is whole and then replaces what was there if
        ``overwrite`` allows that; a FIFO or a device; ``-`` for standard output.

    Several chunks are read and decoded at once, in bounded memory. Returns the bytes
    written. Raises ZarrfsError: ChunkError for a chunk that cannot be had, TransferError
    for the target; nothing is in the target's place then that was not there before.
    """
    with (
        engine(config.engine, config.source.memory_bytes) as workers,
        opened(source, config, writable=False) as source_array,
    ):
        made, elements = _made(source_array, form)
        if made.boxed is not None:
            if workers is not None:
                raise UsageError(f"{target}: workers do not write this format: name another one")
            array = source_array.array, source_array.metadata
            view = view_of(made.boxed, {"": array}, source_array.caches)
            identity = _identity(source_array, form, config)
            write_view(view, made.boxed, target, identity, config, overwrite=overwrite)
            return made.boxed.size
        size = made.frame + elements.window.elements * source_array.item_size
        identity = _identity(source_array, form, config)
        resume = config.resume or workers is not None
        with output(target, size, identity, resume=resume, overwrite=overwrite) as out:
            if workers is not None and not out.path:
                raise UsageError(f"{target}: workers write to files only, not to pipes and devices")
            most = source_array.memory // (_AHEAD + 1) // source_array.item_size
            make = TilePlan.make if out.seekable else TilePlan.in_file_order
            plan = make(elements.window, most)
            if not out.done:
                out.write(0, memoryview(made.header))
            if workers is None:
                _write_tiles(out, elements, plan, made, config)
            else:
                task = TileTask(
                    source_name(source), out.path, config.path, config.region,
                    for_workers(config.source, source), form, made.start, (), (),
                )  # fmt: skip
                finished = Finished(out.done)

                def written(numbers: tuple[int, ...]) -> None:
                    finished.add(numbers)
                    out.note(finished.first)

                perform_elsewhere(
                    *(workers, export_tiles, task, plan, config),
                    item=source_array.item_size,
                    done=out.done,
                    performed=written,
                )
            out.write(size - len(made.trailer), memoryview(made.trailer))
        config.progress(size, size)
        return size


def _made(source: Opened, form: FlatForm) -> tuple[Form, Elements]:
    """The bytes around the elements, and the elements."""
    region, metadata = source.region, source.metadata
    part = None if region.shape == metadata.shape and not region.dropped else region
    made = form.form(describe(metadata, form.layout, source.path, source.around, part))
    assert made.layout is not None, "cannot export to a header alone"
    window = source.window(metadata.layout.read)
    return made, Elements(source.array, window, made.layout)


def export_tiles(task: TileTask) -> None:
    """Write some tiles of an export. Opens everything anew, so that nothing stays in a worker."""
    with opened(task.array, task.config, writable=False) as source:
        made, elements = _made(source, task.form)
        with part_of(task.file) as out:
            largest = max(tile.elements for tile in task.tiles)
            for _ in _written(out, elements, task.tiles, largest, made, keep=True):
                pass


def _write_tiles(
    out: Output, elements: Elements, plan: TilePlan, made: Form, config: TransferConfig
) -> None:
    item = elements.dtype.itemsize
    start = made.start
    total = start + elements.window.elements * item
    position = start + sum(tile.elements for tile in islice(plan, out.done)) * item
    tiles = islice(plan, out.done, None)
    largest = Tile(plan.lengths, plan.lengths).elements
    keep = plan.cuts_chunks
    # Without a name for the generator, so that it ends with the loop whatever is raised.
    for number, tile in enumerate(
        _written(out, elements, tiles, largest, made, keep=keep), out.done + 1
    ):
        position += tile.elements * item
        out.note(number)
        config.progress(position, total)


def _written(
    out: Output,
    elements: Elements,
    tiles: Iterable[Tile],
    largest: int,
    made: Form,
    *,
    keep: bool,
) -> Iterator[Tile]:
    """The tiles, each when it is written.

    largest : elements of the largest tile.
    keep : see `fetch_tiles`.
    """
    item = elements.dtype.itemsize
    start = made.start
    big = made.layout is not None and made.layout.byteorder == "big"
    first_bits = 0 if big else item - 1
    whole = elements.window.shape
    # For a tile that is written and those that are read meanwhile.
    ring = cycle([np.empty(max(largest, 1), elements.dtype) for _ in range(_AHEAD + 1)])

    def memory(tile: Tile) -> NDArray[Any]:
        return next(ring)[: tile.elements]

    for tile, values in fetch_tiles(elements, tiles, memory, _AHEAD, keep=keep):
        octets = values.view(np.uint8)
        if made.flipped:
            octets[first_bits::item] ^= 0x80
        data = octets.data
        for run_ in tile.runs(whole):
            first = run_.in_tile * item
            part = data[first : first + run_.elements * item]
            if made.records is None:
                out.write(start + run_.in_file * item, part)
            else:
                for offset, piece in made.records.woven(run_.in_file * item, part):
                    out.write(start + offset, piece)
        yield tile


def _identity(source: Opened, form: FlatForm, config: TransferConfig) -> dict[str, Any]:
    """Properties that must be the same to continue an export. The tiles follow from them."""
    return {
        "source": join(source.store.url, source.array.array.path),
        "shape": list(source.metadata.shape),
        "data_type": source.metadata.layout.data_type.name,
        "chunks": list(source.metadata.layout.read.largest_chunk),
        "region": [list(source.region.origin), list(source.region.shape)],
        "form": [form.container, form.byteorder, form.order],
        "memory": source.memory,
    }
