"""All ratios of a run, sorted, as one chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks import svg
from benchmarks.shapes.outcome import ShapeOutcome
from benchmarks.shapes.report import by_row

_HEIGHT = 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 40, 30
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def sorted_ratios(outcomes: Sequence[ShapeOutcome]) -> str:
    """A curve for each row: its shapes from the slowest to the fastest, beside TensorStore.

    A mark says its seed and geometry when the pointer rests on it.
    """
    rows = by_row(outcomes)
    ratios = [outcome.ratio for outcome in outcomes]
    low, high = min(0.5, *ratios), max(2.0, *ratios)

    def height(ratio: float) -> float:
        part = math.log(ratio / low) / math.log(high / low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _BOTTOM - _TOP)

    right = svg.WIDTH - _RIGHT
    parts = []
    for tick in _TICKS:
        if low <= tick <= high:
            style = "must" if tick == 1 else "grid"
            parts.append(svg.across(height(tick), _LEFT, right, style))
            parts.append(svg.text(_LEFT - 8, height(tick) + 4, f"{tick:g}×", "end", "note"))
    for number, (name, found) in enumerate(rows.items()):
        style = f"s{number % svg.STYLES}"
        x = _LEFT + number * 120
        parts += [svg.box(x, 10, 12, 12, style), svg.text(x + 18, 20, name)]
        step = (right - _LEFT) / len(found)
        for place, outcome in enumerate(sorted(found, key=lambda outcome: outcome.ratio)):
            told = escape(f"{name}, seed {outcome.geometry.seed}: {outcome.ratio:.2f}×")
            parts.append(
                f'<circle class="{style}" cx="{_LEFT + (place + 0.5) * step:.1f}" '
                f'cy="{height(outcome.ratio):.1f}" r="4">'
                f"<title>{told}, {escape(str(outcome.geometry))}</title></circle>"
            )
    note = "each mark a shape drawn at random, the slowest first; TensorStore in process is 1×"
    parts.append(svg.text(_LEFT, _HEIGHT - 8, note, style="note"))
    return svg.document(_HEIGHT, parts)
