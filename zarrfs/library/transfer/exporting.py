"""From an array to a flat file or a pipe."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from zarrfs.array.node_readers import join
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.library.transfer.output_file import Output, output
from zarrfs.library.transfer.tile_reader import Buffers, TileElements, fetch_tiles
from zarrfs.library.transfer.tiles import Tile, TilePlan
from zarrfs.library.transfer.transfer import Opened, TransferConfig, opened

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
    with opened(source, config, writable=False) as source_array:
        header = form.header(
            source_array.metadata.layout.data_type, source_array.region.result_shape
        )
        elements = TileElements(
            source_array.array,
            source_array.window(source_array.metadata.layout.read),
            form.layout,
        )
        size = len(header) + elements.window.elements * source_array.item_size
        identity = _identity(source_array, form, config)
        with output(target, size, identity, resume=config.resume, overwrite=overwrite) as out:
            most = source_array.memory // (_AHEAD + 1) // source_array.item_size
            make = TilePlan.make if out.seekable else TilePlan.in_file_order
            plan = make(elements.window, most)
            if not out.done:
                out.write(0, memoryview(header))
            _write_tiles(out, elements, plan, len(header), config)
        config.progress(size, size)
        return size


def _write_tiles(
    out: Output, elements: TileElements, plan: TilePlan, start: int, config: TransferConfig
) -> None:
    item = elements.dtype.itemsize
    whole = elements.window.shape
    total = start + elements.window.elements * item
    position = start + sum(tile.elements for tile in islice(plan, out.done)) * item
    memory = Buffers(elements.dtype, max((_largest(plan), 1)), _AHEAD)
    for number, (tile, values) in enumerate(
        fetch_tiles(elements, plan, memory, _AHEAD, keep=plan.cuts_chunks, skip=out.done),
        out.done + 1,
    ):
        data = values.view(np.uint8).data
        for run in tile.runs(whole):
            first = run.in_tile * item
            out.write(start + run.in_file * item, data[first : first + run.elements * item])
        position += tile.elements * item
        out.note(number)
        config.progress(position, total)


def _largest(plan: TilePlan) -> int:
    return Tile(plan.lengths, plan.lengths).elements


def _identity(source: Opened, form: FlatForm, config: TransferConfig) -> dict[str, Any]:
    """What must be the same for an export to be gone on with. The tiles follow from it."""
    return {
        "source": join(source.store.url, source.array.array.path),
        "shape": list(source.metadata.shape),
        "data_type": source.metadata.layout.data_type.name,
        "chunks": list(source.metadata.layout.read.largest_chunk),
        "region": [list(source.region.origin), list(source.region.shape)],
        "form": [form.container, form.byteorder, form.order],
        "memory": source.memory,
    }
