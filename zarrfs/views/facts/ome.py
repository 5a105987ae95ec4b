"""OME-Zarr's facts about one level of an image, versions 0.1 to 0.5.

https://ngff.openmicroscopy.org/0.5/. The group that describes an image need not be directly above
its levels: ngff-zarr writes them as ``scale0/image``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from zarrfs.views.facts.facts import Around, Channel, Role, role_of
from zarrfs.views.facts.text import dicts, number, numbers, plain

_MOST = 16
_SPATIALDATAS = "global"
"""The system that SpatialData means where none is named."""
_FIRST_AXES = ("t", "c", "z", "y", "x")
"""The axes of every image of versions 0.1 and 0.2."""


_DIRECTIONS = {
    "right-to-left": (0, 1.0), "anterior-to-posterior": (1, 1.0), "inferior-to-superior": (2, 1.0),
    "left-to-right": (0, -1.0), "posterior-to-anterior": (1, -1.0),
    "superior-to-inferior": (2, -1.0),
}  # fmt: skip


class OmeAxis(NamedTuple):
    """
    direction : in a body: which of left, posterior and superior it leads to, and 1.0, or -1.0 if
        away from there; None: not known.
    """

    name: str = ""
    unit: str = ""
    role: Role = ""
    direction: tuple[int, float] | None = None


class OmeLevel(NamedTuple):
    """
    axes : one for each axis of the array.
    spacing : None if it is not known.
    """

    axes: tuple[OmeAxis, ...]
    spacing: tuple[float, ...] | None
    origin: tuple[float, ...]
    channels: tuple[Channel, ...]


def ome_level(around: Around, rank: int) -> OmeLevel | None:
    """The facts about the array of ``rank`` axes; None if no group above it describes it."""
    for path, attributes in around.groups:
        said = said_in(attributes)
        for scale in dicts(said.get("multiscales"))[:_MOST]:
            for dataset in dicts(scale.get("datasets")):
                named = dataset.get("path")
                if isinstance(named, str) and named.strip("/") == path:
                    return _level(said, scale, dataset, rank)
    return None


def said_in(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """OME-Zarr's members of a group's attributes, which since 0.5 has them below ``ome``."""
    ome = attributes.get("ome")
    return ome if isinstance(ome, Mapping) else attributes


def _level(
    said: Mapping[str, Any], scale: Mapping[str, Any], dataset: Mapping[str, Any], rank: int
) -> OmeLevel:
    spacing, origin = [1.0] * rank, [0.0] * rank
    steps = dicts(dataset.get("coordinateTransformations"))[:_MOST]
    axes = scale.get("axes", list(_FIRST_AXES))
    # From version 0.6 on, the transformations of the image lead to other systems than its own.
    if systems := dicts(scale.get("coordinateSystems")):
        name = _output(steps[0]) if steps else None
        axes = next((s.get("axes") for s in systems if s.get("name") == name), None)
    else:
        steps += _to_one_system(dicts(scale.get("coordinateTransformations"))[:_MOST])
    known = [_transform(step, spacing, origin) for step in steps]
    if not known or not all(known):
        return OmeLevel(_axes(axes, rank), None, (0.0,) * rank, _channels(said))
    return OmeLevel(_axes(axes, rank), tuple(spacing), tuple(origin), _channels(said))


def _to_one_system(steps: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The transformations to one of several systems, which SpatialData names."""
    names = [_output(step) for step in steps]
    wanted = _SPATIALDATAS if _SPATIALDATAS in names else next(iter(names), None)
    return [step for step, name in zip(steps, names, strict=True) if name == wanted]


def _output(step: Mapping[str, Any]) -> Any:
    output = step.get("output")
    return output.get("name") if isinstance(output, Mapping) else output


def _axes(axes: Any, rank: int) -> tuple[OmeAxis, ...]:
    if not isinstance(axes, list | tuple) or len(axes) != rank:
        return (OmeAxis(),) * rank
    return tuple(map(_axis, axes))


def _axis(said: Any) -> OmeAxis:
    if isinstance(said, str):
        return OmeAxis(plain(said, 64), "", role_of(said))
    if not isinstance(said, Mapping):
        return OmeAxis()
    name = plain(said.get("name"), 64)
    kind = said.get("type")
    role: Role = role_of(name)
    if kind in ("time", "channel"):
        role = kind
    elif kind == "space" and role in ("time", "channel"):
        role = ""
    orientation = said.get("orientation")
    value = orientation.get("value") if isinstance(orientation, Mapping) else None
    direction = _DIRECTIONS.get(plain(value))
    return OmeAxis(name, plain(said.get("unit"), 32), role, direction)


def _transform(step: Mapping[str, Any], spacing: list[float], origin: list[float]) -> bool:
    """Apply scales and translations; False for any other transformation, such as a rotation."""
    kind = step.get("type")
    if kind == "sequence":
        steps = dicts(step.get("transformations"))[:_MOST]
        return all(s.get("type") != kind and _transform(s, spacing, origin) for s in steps)
    if kind == "identity":
        return True
    if kind == "affine":
        steps = _without_mixing(step, len(spacing))
        return bool(steps) and all(_transform(s, spacing, origin) for s in steps)
    values = numbers(step.get(kind), len(spacing)) if isinstance(kind, str) else None
    if values is None or kind not in ("scale", "translation") or (kind == "scale" and 0 in values):
        return False
    for i, value in enumerate(values):
        if kind == "translation":
            origin[i] += value
        else:
            spacing[i] *= value
            origin[i] *= value
    return True


def _without_mixing(step: Mapping[str, Any], rank: int) -> list[Mapping[str, Any]]:
    """A scale and a translation that are the same as an affine; none if it mixes the axes.

    SpatialData may have the axes in another order behind it.
    """
    matrix = step.get("affine")
    if not isinstance(matrix, list | tuple) or len(matrix) not in (rank, rank + 1):
        return []
    before, behind = (
        [plain(axis.get("name")) for axis in dicts(end.get("axes"))]
        if isinstance(end, Mapping)
        else []
        for end in (step.get("input"), step.get("output"))
    )
    known = len(before) == rank and sorted(before) == sorted(behind)
    order = [before.index(name) for name in behind] if known else [*range(rank)]
    scale, moves = [0.0] * rank, [0.0] * rank
    for axis, row in zip(order, matrix, strict=False):
        said = numbers(row, rank + 1)
        if said is None or any(n for i, n in enumerate(said[:rank]) if i != axis):
            return []
        scale[axis], moves[axis] = said[axis], said[rank]
    return [
        {"type": "scale", "scale": scale},
        {"type": "translation", "translation": moves},
    ]


def _channels(said: Mapping[str, Any]) -> tuple[Channel, ...]:
    omero = said.get("omero")
    if not isinstance(omero, Mapping):
        return ()
    return tuple(map(_channel, dicts(omero.get("channels"))))


def _channel(said: Mapping[str, Any]) -> Channel:
    colour = None
    text = said.get("color")
    if isinstance(text, str) and len(text) == 6:
        try:
            red, green, blue = bytes.fromhex(text)
            colour = (red, green, blue)
        except ValueError:
            pass
    window = said.get("window")
    window = window if isinstance(window, Mapping) else {}
    low, high = number(window.get("start")), number(window.get("end"))
    shown = None if low is None or high is None or not low < high else (low, high)
    return Channel(plain(said.get("label"), 64), colour, shown)
