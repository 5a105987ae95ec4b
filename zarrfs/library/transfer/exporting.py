"""From an array to a file or a pipe."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from zarrfs.array.node_readers import join
from zarrfs.library.transfer.flat_form import FlatForm
from zarrfs.library.transfer.group_export import view_of, write_view
from zarrfs.library.transfer.output_file import Output, output
from zarrfs.library.transfer.tile_reader import Buffers, TileElements, fetch_tiles
from zarrfs.library.transfer.tiles import Tile, TilePlan
from zarrfs.library.transfer.transfer import Opened, TransferConfig, opened
from zarrfs.views.headers.describe import describe
from zarrfs.views.headers.described import Described
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
    with opened(source, config, writable=False) as source_array:
        made = form.form(_described(source_array, form))
        assert made.layout is not None, "cannot export to a header alone"
        if made.boxed is not None:
            array = source_array.array, source_array.metadata
            view = view_of(made.boxed, {"": array}, source_array.caches)
            identity = _identity(source_array, form, config)
            write_view(view, target, identity, config, overwrite=overwrite)
            return made.boxed.size
        elements = TileElements(
            source_array.array,
            source_array.window(source_array.metadata.layout.read),
            made.layout,
        )
        size = made.frame + elements.window.elements * source_array.item_size
        identity = _identity(source_array, form, config)
        with output(target, size, identity, resume=config.resume, overwrite=overwrite) as out:
            most = source_array.memory // (_AHEAD + 1) // source_array.item_size
            make = TilePlan.make if out.seekable else TilePlan.in_file_order
            plan = make(elements.window, most)
            if not out.done:
                out.write(0, memoryview(made.header))
            _write_tiles(out, elements, plan, made, config)
            out.write(size - len(made.trailer), memoryview(made.trailer))
        config.progress(size, size)
        return size


def _described(source: Opened, form: FlatForm) -> Described:
    region = source.region
    whole = region.shape == source.metadata.shape and not region.dropped
    return describe(
        source.metadata, form.layout, source.path, source.around, None if whole else region
    )


def _write_tiles(
    out: Output, elements: TileElements, plan: TilePlan, made: Form, config: TransferConfig
) -> None:
    item = elements.dtype.itemsize
    start = len(made.header)
    big = made.layout is not None and made.layout.byteorder == "big"
    first_bits = 0 if big else item - 1
    whole = elements.window.shape
    total = start + elements.window.elements * item
    position = start + sum(tile.elements for tile in islice(plan, out.done)) * item
    memory = Buffers(elements.dtype, max((_largest(plan), 1)), _AHEAD)
    for number, (tile, values) in enumerate(
        fetch_tiles(elements, plan, memory, _AHEAD, keep=plan.cuts_chunks, skip=out.done),
        out.done + 1,
    ):
        octets = values.view(np.uint8)
        if made.flipped:
            octets[first_bits::item] ^= 0x80
        data = octets.data
        for run in tile.runs(whole):
            first = run.in_tile * item
            part = data[first : first + run.elements * item]
            if made.records is None:
                out.write(start + run.in_file * item, part)
            else:
                for offset, piece in made.records.woven(run.in_file * item, part):
                    out.write(start + offset, piece)
        position += tile.elements * item
        out.note(number)
        config.progress(position, total)


def _largest(plan: TilePlan) -> int:
    return Tile(plan.lengths, plan.lengths).elements


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
