"""The picture of an array, as SVG 1.1, or as PNG drawn by Matplotlib (extra ``plot``)."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.errors import UsageError, to_install
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


_SIDE = 300  # of a map, in pixels
_LEFT, _BETWEEN, _RIGHT = 76, 96, 28
_LINE = 18
_SCALE = 10  # height of the colour scale

# From light to dark, so that a print in grey shows the same order.
_LIGHT, _DARK = (0xD6, 0xE6, 0xF4), (0x08, 0x30, 0x6B)
_MISSING = "#eeeeee"


def svg(drawn: Figure) -> str:
    """The document; `colour` has the meaning of its colours."""
    top = _LINE * (len(drawn.lines) + 2)
    width = _LEFT + len(drawn.maps) * (_SIDE + _BETWEEN) - _BETWEEN + _RIGHT
    height = top + _SIDE + 120
    parts = list(_texts(drawn))
    for number, shown in enumerate(drawn.maps):
        left = _LEFT + number * (_SIDE + _BETWEEN)
        parts += _map(shown, drawn.rows, drawn.columns, left, top)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">\n'
        f"<title>{_plain(drawn.lines[0])}</title>\n"
        f'<rect width="{width}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


def colour(share: float) -> str:
    """``share`` : 0 to 1 on the scale; NaN for what is missing."""
    if math.isnan(share):
        return _MISSING
    mixed = (round(a + (b - a) * share) for a, b in zip(_LIGHT, _DARK, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _texts(drawn: Figure) -> Iterator[str]:
    for number, line in enumerate(drawn.lines):
        weight = "" if number else ' font-weight="bold"'
        yield _text(_LEFT, _LINE * (number + 1), line, more=weight)


def _map(shown: Map, rows: Axis, columns: Axis, left: int, top: int) -> Iterator[str]:
    yield _text(left, top - 8, shown.title)
    yield f'<rect x="{left}" y="{top}" width="{_SIDE}" height="{_SIDE}" fill="{_MISSING}"/>'
    low, high = shown.low[0], shown.high[0]
    height, width = (_SIDE / count for count in shown.values.shape)
    for i, row in enumerate(shown.values.tolist()):
        for j, value in enumerate(row):
            if math.isnan(value):
                continue
            share = (value - low) / (high - low) if high > low else 1.0
            yield (
                f'<rect x="{left + j * width:.2f}" y="{top + i * height:.2f}" '
                f'width="{width:.2f}" height="{height:.2f}" fill="{colour(share)}"/>'
            )
    yield (
        f'<rect x="{left}" y="{top}" width="{_SIDE}" height="{_SIDE}" fill="none" '
        'stroke="#444444"/>'
    )
    bottom = top + _SIDE
    for tick in ticks(columns.count):
        x = left + (tick + 0.5) * _SIDE / columns.count
        yield _text(x, bottom + 15, str(tick), "middle")
    yield _text(left + _SIDE / 2, bottom + 33, columns.label, "middle")
    if rows.label:
        for tick in ticks(rows.count):
            y = top + (tick + 0.5) * _SIDE / rows.count
            yield _text(left - 5, y + 4, str(tick), "end")
        x, y = left - 44, top + _SIDE / 2
        yield _text(x, y, rows.label, "middle", f' transform="rotate(-90 {x} {y})"')
    yield from _scale(shown, left, bottom + 52)


def _scale(shown: Map, left: int, top: int) -> Iterator[str]:
    """From missing to the end of the scale, each with its text below."""
    yield f'<rect x="{left}" y="{top}" width="36" height="{_SCALE}" fill="{_MISSING}"/>'
    yield _text(left, top + 25, "none")
    start, steps = left + 60, 40
    step = (_SIDE - 60) / steps
    for number in range(steps):
        yield (
            f'<rect x="{start + number * step:.2f}" y="{top}" width="{step + 0.5:.2f}" '
            f'height="{_SCALE}" fill="{colour(number / (steps - 1))}"/>'
        )
    yield _text(start, top + 25, shown.low[1])
    yield _text(left + _SIDE, top + 25, shown.high[1], "end")


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{_plain(text)}</text>'


def _plain(text: str) -> str:
    """Names come from strangers' files, and XML takes no control characters."""
    return escape("".join(char if char.isprintable() else "�" for char in text))


def png(drawn: Figure) -> bytes:
    """The file's content. Raises UsageError if Matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415
    except ImportError as error:
        raise UsageError(
            f"--plot needs Matplotlib for PNG: write .svg, or, {to_install('plot')}"
        ) from error
    colours = LinearSegmentedColormap.from_list("stored", [colour(0.0), colour(1.0)])
    canvas = Canvas(figsize=(5.2 * len(drawn.maps), 5.6), dpi=150, layout="constrained")
    FigureCanvasAgg(canvas)
    # A name may have a dollar sign, which would begin a formula.
    canvas.suptitle("\n".join(drawn.lines), fontsize=10, x=0.02, ha="left", parse_math=False)
    for number, shown in enumerate(drawn.maps):
        panel: Any = canvas.add_subplot(1, len(drawn.maps), number + 1)
        _draw(canvas, panel, shown, drawn.rows, drawn.columns, colours)
    file = io.BytesIO()
    canvas.savefig(file, format="png")
    return file.getvalue()


def _draw(canvas: Any, panel: Any, shown: Map, rows: Axis, columns: Axis, colours: Any) -> None:
    high = shown.high[0]
    # A single value gets the darkest colour.
    low = shown.low[0] if shown.low[0] < high else high - 1.0
    image = panel.imshow(
        shown.values,
        cmap=colours,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, columns.count - 0.5, rows.count - 0.5, -0.5),
    )
    panel.set_facecolor(colour(math.nan))
    panel.set_title(shown.title, fontsize=10)
    panel.set_xlabel(columns.label, parse_math=False)
    panel.set_xticks(ticks(columns.count))
    panel.set_ylabel(rows.label, parse_math=False)
    panel.set_yticks(ticks(rows.count) if rows.label else [])
    scale = canvas.colorbar(image, ax=panel, location="bottom", ticks=[low, high])
    scale.ax.set_xticklabels([shown.low[1], shown.high[1]])
