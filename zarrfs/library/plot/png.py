"""A figure as PNG, drawn by Matplotlib (extra ``plot``)."""

from __future__ import annotations

import io
import math
from typing import Any

from zarrfs.errors import UsageError, to_install
from zarrfs.library.plot.figure import Axis, Figure, Map, ticks
from zarrfs.library.plot.svg import colour


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
