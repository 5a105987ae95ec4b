"""From a flat file or a pipe into an array."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.writable_array import WritableArray
from zarrfs.errors import ChunkError, UsageError
from zarrfs.format.chunk_grid import Shape
from zarrfs.library.engine import engine, for_workers
from zarrfs.library.source import source_name
from zarrfs.library.transfer.flat_form import FlatForm, read_npy_header
from zarrfs.library.transfer.input_file import Input, input_file
from zarrfs.library.transfer.tiles import Tile, TilePlan
from zarrfs.library.transfer.transfer import (
    STANDARD_STREAM,
    Opened,
    TileTask,
    TransferConfig,
    TransferError,
    opened,
    perform_elsewhere,
)
from zarrfs.views.elements.element_changes import ElementChanges
from zarrfs.views.elements.elements import Elements


def import_array(source: str, target: str, form: FlatForm, config: TransferConfig) -> int:
    """Write the elements in a file to an array that is there, or to a region of it. Blocks.

    source : a file, FIFO or device, ``-`` for standard input. It must have exactly the
        bytes that the region takes; of a file that is seen before anything is written.
    target : an array, as for `zarrfs.open_array`.
    form : of the file; the byte order and axis order of NPY are in its header.
    config : with ``resume``, elements that are stored already are read and compared, and
        written only where they differ.

    When it returns, everything is stored. Returns the bytes read. Raises ZarrfsError; what
    was stored until then stays.
    """
    with (
        engine(config.engine, config.source.memory_bytes) as workers,
        opened(target, config, writable=True) as opened_target,
        input_file(source) as file,
    ):
        if form.container == "npy":
            form, start = _npy_form(file, opened_target)
        else:
            start = 0
        size = start + math.prod(opened_target.region.shape) * opened_target.item_size
        if file.size is not None and file.size != size:
            what = "the region" if config.region else "the array"
            raise UsageError(
                f"{file.name}: has {file.size} bytes, {what} of "
                f"{list(opened_target.region.shape)} needs {size}"
            )
        plan = _plan(opened_target, form, in_file_order=not file.seekable)
        if workers is None:
            position = start
            largest = Tile(plan.lengths, plan.lengths).elements
            for tile in _read(file, opened_target, form, start, plan, largest, config.resume):
                position += tile.elements * opened_target.item_size
                config.progress(position, size)
        elif source == STANDARD_STREAM or not file.seekable or plan.cuts_chunks:
            raise UsageError(
                f"{file.name}: workers need a file, and --memory for a whole stored object"
            )
        else:
            task = TileTask(
                source_name(target), os.path.abspath(source), config.path, config.region,
                for_workers(config.source, target), form, start, (), (),
            )  # fmt: skip
            perform_elsewhere(
                workers, import_tiles, task, plan, config, item=opened_target.item_size
            )
        if not file.seekable and not file.at_end():
            raise TransferError(f"{file.name}: goes on after the {size} bytes that were needed")
        config.progress(size, size)
        return size


def _npy_form(file: Input, target: Opened) -> tuple[FlatForm, int]:
    """The form in the header. Raises UsageError if shape or type differ from the array."""
    header = read_npy_header(file.take, file.name)
    shape = target.region.shape
    # Axes of length 1 do not change where an element lies.
    if _without_ones(header.shape) != _without_ones(shape):
        raise UsageError(f"{file.name}: is of shape {list(header.shape)}, not {list(shape)}")
    form = FlatForm("npy", header.byteorder, header.order)
    data_type = target.metadata.layout.data_type
    expected = data_type.stored_dtype(big_endian=form.byteorder == "big")
    if header.dtype != expected and header.dtype != _as_numpy_says(expected):
        raise UsageError(f"{file.name}: holds {header.dtype}, the array {data_type.name}")
    return form, header.size


def _without_ones(shape: Shape) -> list[int]:
    return [n for n in shape if n != 1]


def _as_numpy_says(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The data type that NumPy reads from a file of ``dtype``."""
    return np.lib.format.descr_to_dtype(np.lib.format.dtype_to_descr(dtype))


def _plan(target: Opened, form: FlatForm, *, in_file_order: bool) -> TilePlan:
    layout = target.metadata.layout
    make = TilePlan.in_file_order if in_file_order else TilePlan.make
    write_back = target.caches.write_back
    assert write_back is not None
    # Marks and copies take up to as much memory as the elements.
    most = min(target.memory // 2, write_back.budget.total // 4) // target.item_size
    # Object by object, so that each becomes whole, and is stored, as soon as possible.
    for grid in (layout.stored, layout.read):
        window = target.window(grid)
        plan = make(window.transposed if form.order == "F" else window, most)
        if not plan.cuts_chunks:
            break
    return plan


def import_tiles(task: TileTask) -> None:
    """Store some tiles of an import, whole objects. Opens everything anew."""
    with opened(task.array, task.config, writable=True) as target, input_file(task.file) as file:
        largest = max(tile.elements for tile in task.tiles)
        for _ in _read(file, target, task.form, task.start, task.tiles, largest, resume=False):
            pass


def _read(
    file: Input,
    target: Opened,
    form: FlatForm,
    start: int,
    tiles: Iterable[Tile],
    largest: int,
    resume: bool,
) -> Iterator[Tile]:
    """The tiles, each when its elements are changes. At the end all are stored.

    largest : elements of the largest tile.
    resume : whether to store only tiles that differ from what is stored.
    """
    array = target.array
    assert isinstance(array, WritableArray)
    elements = Elements(array, target.window(target.metadata.layout.read), form.layout)
    item = elements.dtype.itemsize
    whole = elements.window.shape
    memory = np.empty(max(largest, 1), elements.dtype)
    stored = np.empty_like(memory) if resume else None
    for tile in tiles:
        values = memory[: tile.elements]
        data = values.view(np.uint8).data
        for run_ in tile.runs(whole):
            first = run_.in_tile * item
            file.read(start + run_.in_file * item, data[first : first + run_.elements * item])
        of_tile = elements.box(*tile)
        if stored is None or not _is_stored(of_tile, values, stored[: tile.elements]):
            ElementChanges(of_tile).change(0, values)
        yield tile
    array.flush()


def _is_stored(elements: Elements, values: NDArray[Any], memory: NDArray[Any]) -> bool:
    """Whether the array has these elements already; no if they cannot be read."""
    error: Future[ChunkError | None] = Future()
    elements.scan(memory, 0, elements.count, error.set_result)
    return error.result() is None and values.view(np.uint8).data == memory.view(np.uint8).data
