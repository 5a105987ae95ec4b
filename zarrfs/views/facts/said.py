"""Facts as JSON and as lines for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from zarrfs.views.facts.facts import Axis, Facts, Number
from zarrfs.views.facts.text import digits


def as_json(facts: Facts) -> dict[str, Any]:
    """The known facts. Numbers that JSON lacks, such as NaN, are text."""
    place = facts.georeference
    found: dict[str, Any] = {
        "axes": [
            {
                key: value
                for key, value in axis._asdict().items()
                if key != "coordinates" and value not in ("", None)
            }
            for axis in facts.axes
        ],
        "crs": place.crs,
        "transform": place.transform and list(place.transform),
        "registration": ("node" if place.nodes else "pixel") if place.transform else None,
        "affine": facts.affine and [list(column) for column in facts.affine],
        "missing_values": [_json_number(value) for value in facts.missing],
        "valid_range": facts.valid and [v if v is None else _json_number(v) for v in facts.valid],
        "scale": facts.scale,
        "offset": facts.offset,
        "unit": facts.unit,
        "signed": facts.signed,
        "description": facts.description,
        "channels": [
            {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in channel._asdict().items()
                if value
            }
            for channel in facts.channels
        ],
        "colours": facts.colours.kind,
    }
    return {key: value for key, value in found.items() if value not in ("", None, [], ())}


def lines(facts: Facts) -> Iterator[tuple[str, str]]:
    """Label and text of each known fact, besides the names and lengths of axes."""
    for i, axis in enumerate(facts.axes):
        if axis.spacing is not None or axis.unit or axis.origin:
            yield f"axis {axis.name or i}", _axis(axis)
    place = facts.georeference
    if place.transform is not None:
        nodes = ", nodes" if place.nodes else ""
        yield "transform", ", ".join(map(digits, place.transform)) + nodes
    if place.crs:
        yield "crs", place.crs
    if facts.affine is not None:
        columns = (", ".join(map(digits, column)) for column in facts.affine)
        unit = next((axis.unit for axis in facts.axes if axis.role == "x"), "")
        frame = f"(x, y, z, origin in {unit}, left posterior superior)"
        yield "affine", f"{'; '.join(columns)} {frame}"
    if facts.missing:
        yield "missing", ", ".join(map(digits, facts.missing))
    if facts.valid is not None:
        low, high = ("" if end is None else digits(end) for end in facts.valid)
        yield "valid", f"{low} to {high}".strip()
    if facts.packed:
        scale = digits(1.0 if facts.scale is None else facts.scale)
        yield "value", f"element × {scale} + {digits(facts.offset or 0.0)}"
    if facts.signed is not None:
        yield "sign", f"elements are {'signed' if facts.signed else 'unsigned'}"
    names = ", ".join(channel.name for channel in facts.channels if channel.name)
    texts = {"unit": facts.unit, "description": facts.description, "channels": names}
    texts["colours"] = facts.colours.kind
    yield from ((label, text) for label, text in texts.items() if text)


def _axis(axis: Axis) -> str:
    spacing = "" if axis.spacing is None else digits(axis.spacing)
    origin = f", from {digits(axis.origin)}" if axis.origin else ""
    return f"{spacing} {axis.unit}".strip() + origin


def _json_number(value: Number) -> Number | str:
    return value if math.isfinite(value) else str(value)
