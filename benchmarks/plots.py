"""Two charts of `make bench`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from benchmarks import svg
from benchmarks.bench import Row
from benchmarks.figures import Figures, peak_of_all
from benchmarks.measuring.measure import Limit, Outcome
from benchmarks.report import MEMORY_LIMIT

_LABELS = 330  # pixels left of the axis
_RIGHT = 76


def rates(outcomes: Sequence[Outcome]) -> str:
    """Bars of MB/s: a group for each outcome, a bar for each contender."""
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.seconds))
    top = max(outcome.rate(name) for outcome in outcomes for name in outcome.seconds)
    left, bar = 180, 14
    scale = (svg.WIDTH - left - _RIGHT) / top
    parts = []
    for number, name in enumerate(names):
        x = left + number * 120
        parts += [svg.box(x, 8, 12, 12, f"s{number % 4}"), svg.text(x + 18, 18, name)]
    y = 34
    for outcome in outcomes:
        parts.append(
            svg.text(left - 8, y + bar * len(outcome.seconds) / 2 + 4, outcome.label, "end")
        )
        for number, name in enumerate(names):
            if name in outcome.seconds:
                rate = outcome.rate(name)
                parts.append(svg.box(left, y, rate * scale, bar - 2, f"s{number % 4}"))
                parts.append(svg.text(left + rate * scale + 4, y + 10, f"{rate:.0f}", style="note"))
                y += bar
        y += 10
    return svg.document(y, parts)


def ratios(figures: Figures, rows: Sequence[Row]) -> str:
    """Every figure as a multiple of what it must reach; right of the line is better."""
    lines = list(_multiples(figures, rows))
    low = min([0.5, *(multiple for _, multiple, _, _ in lines)])
    high = max([2.0, *(max(multiple, aim or 0) for _, multiple, aim, _ in lines)])

    def at(multiple: float) -> float:
        span = svg.WIDTH - _LABELS - _RIGHT
        return _LABELS + span * math.log(max(multiple, low) / low) / math.log(high / low)

    bottom = 40 + 22 * len(lines)
    parts = [svg.text(at(1), 18, "must", "middle"), svg.line(at(1), 24, bottom, "must")]
    for tick in (0.01, 0.1, 0.25, 0.5, 2, 4, 10):
        if low <= tick <= high:
            parts += [
                svg.line(at(tick), 24, bottom, "grid"),
                svg.text(at(tick), 18, f"{tick:g}", "middle", "note"),
            ]
    for number, (label, multiple, aim, figure) in enumerate(lines):
        y = 40 + 22 * number
        reached = "bad" if multiple < 1 else "fair" if aim and multiple < aim else "good"
        parts.append(svg.text(_LABELS - 8, y + 4, label, "end"))
        if aim:
            parts.append(svg.line(at(aim), y - 7, y + 7, "must"))
        parts.append(f'<circle class="{reached}" cx="{at(multiple):.1f}" cy="{y}" r="5"/>')
        parts.append(svg.text(svg.WIDTH - 8, y + 4, figure, "end", "note"))
    return svg.document(bottom, parts)


def _multiples(
    figures: Figures, rows: Sequence[Row]
) -> Iterator[tuple[str, float, float | None, str]]:
    """Label, multiple of what it must be, the same of the aim, the figure itself."""
    for row in rows:
        if row.name in figures:
            for outcome in figures[row.name].outcomes:
                label = f"{row.name} {outcome.label}"
                yield label, *_multiple(outcome.figure, row.limit)
    peak = peak_of_all(figures)
    if peak is not None:
        yield "memory beyond the budget", *_multiple(max(peak[1], 1.0), MEMORY_LIMIT)


def _multiple(figure: float, limit: Limit) -> tuple[float, float | None, str]:
    text = f"{figure:.3g}{limit.unit}"
    if limit.kind == "at least":
        return figure / limit.must, limit.aim and limit.aim / limit.must, text
    return limit.must / figure, limit.aim and limit.must / limit.aim, text
