"""The picture of the layers: which package imports which, as the code has it now."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

_ROOT = Path(__file__).parents[1]
_CONTRACT = "Imports go down the layers"

# In pixels. Packages of one layer share its width.
_WIDTH, _HEIGHT = 240, 34
_GAP = 22
_SIDE, _TOP = 150, 10  # room for the arcs

_STYLE = """\
  <style>
    text { font: 14px sans-serif; fill: #222 }
    rect { fill: #eef3f8; stroke: #557; rx: 4px }
    path { fill: none; stroke: #557; stroke-opacity: 0.55; marker-end: url(#arrow) }
  </style>
  <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9"
    markerUnits="userSpaceOnUse" orient="auto">
    <path d="M0,0 L8,4 L0,8 z" style="fill: #557; stroke: none; marker-end: none"/>
  </marker></defs>
"""


def layers() -> list[list[str]]:
    """The rows of the layer contract, from the top."""
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        one for one in settings["tool"]["importlinter"]["contracts"] if one["name"] == _CONTRACT
    )
    rows = [[name.strip() for name in row.split("|")] for row in contract["layers"]]
    return [row for row in rows if not row[0].startswith("(")]


def imports() -> dict[tuple[str, str], int]:
    """How many modules of one package import from another one, for each pair that do."""
    graph = grimp.build_graph("zarrfs", cache_dir=None)
    importers: dict[tuple[str, str], set[str]] = {}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = (_package(module), _package(imported))
            if pair[0] != pair[1]:
                importers.setdefault(pair, set()).add(module)
    return {pair: len(found) for pair, found in importers.items()}


@dataclass(frozen=True)
class _Box:
    name: str
    row: int
    x: int
    width: int
    leftmost: bool  # of several in its row: its arcs are on the left

    @property
    def y(self) -> int:
        return _TOP + self.row * (_HEIGHT + _GAP)

    @property
    def middle(self) -> int:
        return self.x + self.width // 2


def layers_svg() -> str:
    """Boxes in rows, and an arrow for each pair of packages of which one imports the other.

    The last two rows are what all import; arrows to them would show nothing.
    """
    rows = layers()
    boxes = {box.name: box for row, names in enumerate(rows) for box in _boxes(row, names)}
    arrows = [
        _arrow(boxes[above], boxes[below], count)
        for (above, below), count in sorted(imports().items())
        if above in boxes and below in boxes and below not in (*rows[-2], *rows[-1])
    ]
    width = 2 * _SIDE + _WIDTH
    height = 2 * _TOP + len(rows) * (_HEIGHT + _GAP) - _GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            "  <!-- Written by docs/reference.py from the imports of the code; do not edit. -->",
            _STYLE,
            *arrows,
            *map(_drawn, boxes.values()),
            "</svg>\n",
        ]
    )


def _boxes(row: int, names: list[str]) -> Iterator[_Box]:
    width = (_WIDTH - _GAP * (len(names) - 1)) // len(names)
    for column, name in enumerate(names):
        leftmost = len(names) > 1 and column == 0
        yield _Box(name, row, _SIDE + column * (width + _GAP), width, leftmost)


def _package(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def _drawn(box: _Box) -> str:
    return (
        f'  <rect x="{box.x}" y="{box.y}" width="{box.width}" height="{_HEIGHT}"/>'
        f'<text x="{box.middle}" y="{box.y + _HEIGHT // 2 + 5}" text-anchor="middle">'
        f"{escape(box.name)}</text>"
    )


def _arrow(above: _Box, below: _Box, count: int) -> str:
    """Straight down between neighbours, in an arc past others; wider for more importers."""
    stroke = f'stroke-width="{1 + min(count, 20) / 6:.1f}"'
    rows = below.row - above.row
    if rows == 1:
        # From the wider to the middle of the narrower one.
        x = min(above, below, key=lambda box: box.width).middle
        return f'  <path d="M{x},{above.y + _HEIGHT} L{x},{below.y - 2}" {stroke}/>'
    y1, y2 = above.y + _HEIGHT // 2, below.y + _HEIGHT // 2
    if above.leftmost or below.leftmost:
        x1, x2, away = above.x, below.x - 2, _SIDE - 24 * rows
    else:
        x1, x2 = above.x + above.width, below.x + below.width + 2
        away = _SIDE + _WIDTH + 24 * rows
    return f'  <path d="M{x1},{y1} C{away},{y1} {away},{y2} {x2},{y2}" {stroke}/>'
