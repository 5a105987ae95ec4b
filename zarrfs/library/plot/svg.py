"""A figure as SVG 1.1, which browsers, Inkscape and LaTeX read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from zarrfs.library.plot.figure import Axis, Figure, Map, ticks

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
