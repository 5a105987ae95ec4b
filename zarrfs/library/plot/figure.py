"""The content of the picture of an array, for all renderers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import UsageError
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.library.checking.stored_objects import StoredObjects
from zarrfs.library.info import ArrayInfo, GroupInfo

CELLS = (96, 96)
"""Rows and columns of a map at most; a larger grid has several chunks in a cell."""

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of the maps.

    label : its name, and what a step along it is.
    count : chunks along it.
    """

    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Map:
    """Values over the last two axes of the grid.

    values : rows and columns; NaN: nothing is stored there.
    low, high : ends of the scale, as values and as text.
    """

    title: str
    values: NDArray[np.float64]
    low: tuple[float, str]
    high: tuple[float, str]


@dataclass(frozen=True, slots=True)
class Figure:
    """Lines of text, and maps with the same axes side by side."""

    lines: tuple[str, ...]
    rows: Axis
    columns: Axis
    maps: tuple[Map, ...]


def figure(source: str, found: ArrayInfo | GroupInfo) -> Figure:
    """Raises UsageError if there is nothing to draw."""
    if isinstance(found, GroupInfo):
        raise UsageError("--plot draws one array, and this is a group: name an array with --path")
    if found.metadata is None or found.stored is None:
        raise UsageError(f"--plot cannot draw this array: {found.problem}")
    stored, metadata = found.stored, found.metadata
    if stored.picture is None or stored.per_cell is None or stored.cell_bytes is None:
        raise UsageError("--plot cannot draw this array: the store cannot list what is stored")
    what = "shard" if metadata.layout.sharded else "chunk"
    name = "/".join(filter(None, (source.rstrip("/") or source, found.path)))
    lines = (name, *_summary(stored, metadata, what))
    rows, columns = _axes(metadata, what)
    return Figure(lines, rows, columns, tuple(_maps(stored, metadata, what)))


def size_text(size: float) -> str:
    """``12.3 MiB``."""
    power = min(int(math.log(max(size, 1), 1024)), len(_UNITS) - 1)
    return f"{size / 1024**power:.3g} {_UNITS[power]}"


def ticks(count: int, most: int = 6) -> list[int]:
    """Numbers from 0 to below ``count`` at round steps, about ``most`` of them."""
    step = 1
    while count > most * step:
        digit = str(step)[0]
        step = step * 5 // 2 if digit == "2" else step * 2
    return list(range(0, count, step))


def _summary(stored: StoredObjects, metadata: ArrayMetadata, what: str) -> list[str]:
    least = "" if stored.complete else "at least "
    lines = [f"{least}{stored.present} of {stored.possible} {what}s stored"]
    if stored.measured:
        of = "" if stored.measured == stored.present else f" in {stored.measured} of them"
        lines[0] += f", {size_text(stored.nbytes)}{of}"
    if metadata.layout.data_type.fixed_size:
        text = f"the array has {size_text(metadata.nbytes)}"
        if (compressed := stored.ratio(metadata)) is not None:
            text += f", what is stored is compressed {compressed:.3g}:1"
        lines.append(text)
    before = metadata.layout.stored.counts[:-2]
    if math.prod(before) > 1:
        names = ", ".join(_name(metadata, axis) for axis in range(len(before)))
        lines.append(f"{math.prod(before)} planes along {names} together")
    return lines


def _maps(stored: StoredObjects, metadata: ArrayMetadata, what: str) -> list[Map]:
    assert stored.picture is not None
    assert stored.per_cell is not None
    assert stored.cell_bytes is not None
    share = np.full(stored.picture.shape, np.nan)
    np.divide(stored.picture, stored.per_cell, out=share, where=stored.picture > 0)
    maps = [Map(f"stored {what}s", share, (0.0, "few"), (1.0, "all"))]
    counts, sizes = stored.cell_measured, stored.cell_bytes
    assert counts is not None
    if counts.any():
        mean = np.full(sizes.shape, np.nan)
        np.divide(sizes, counts, out=mean, where=counts > 0)
        low, high = float(np.nanmin(mean)), float(np.nanmax(mean))
        title = f"stored size of a {what}"
        maps.append(Map(title, mean, (low, size_text(low)), (high, size_text(high))))
    return maps


def _axes(metadata: ArrayMetadata, what: str) -> Sequence[Axis]:
    grid = metadata.layout.stored
    axes = []
    rank = len(grid.counts)
    for axis in (rank - 2, rank - 1):
        if axis < 0:
            axes.append(Axis("", 1))
            continue
        length = grid.largest_chunk[axis]
        elements = f"{length} element{'' if length == 1 else 's'}"
        axes.append(Axis(f"{_name(metadata, axis)} ({what}s of {elements})", grid.counts[axis]))
    return axes


def _name(metadata: ArrayMetadata, axis: int) -> str:
    names = metadata.dimension_names or ()
    name = names[axis] if axis < len(names) else None
    return name or f"axis {axis}"
