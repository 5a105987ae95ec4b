"""The parts of a chart as SVG, which follows the reader's light or dark theme."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = """
text { font: 12px sans-serif; fill: #222 }
.note { fill: #666 } .grid { stroke: #ddd } .must { stroke: #222; stroke-width: 1.5 }
.s0 { fill: #0a6ebd } .s1 { fill: #f2a541 } .s2 { fill: #9aa5b1 } .s3 { fill: #cbd2d9 }
.s4 { fill: #2e8b57 } .s5 { fill: #8e5bb5 }
.good { fill: #2e8b57 } .fair { fill: #0a6ebd } .bad { fill: #c0392b }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .note { fill: #999 } .grid { stroke: #333 } .must { stroke: #ddd }
}
"""
WIDTH = 820
STYLES = 6  # s0 and so on


def text(x: float, y: float, text: str, anchor: str = "start", style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def box(x: float, y: float, width: float, height: float, style: str) -> str:
    return (
        f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'
    )


def line(x: float, top: float, bottom: float, style: str) -> str:
    return f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'


def across(y: float, left: float, right: float, style: str) -> str:
    """A horizontal line."""
    return f'<line class="{style}" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def document(height: float, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}">\n<style>{_STYLE}</style>\n{body}\n</svg>\n'
    )
