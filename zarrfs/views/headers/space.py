"""Which axis of a file is x, y and z in space.

Hardly any metadata say how an array lies in a patient or on an instrument; see
`zarrfs.views.facts.place.affine`. Formats that have to name such a frame all name the same one: x,
y and z grow along the axes of these names, which are ITK's (left, posterior, superior), so that one
voxel has one place in every file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from zarrfs.views.facts.facts import Axis, Role

Directions: TypeAlias = Sequence[Sequence[float]] | None
"""As `Facts.affine`."""

_PLACES: dict[Role, int] = {"x": 0, "y": 1, "z": 2}


def directions(axes: Sequence[Axis]) -> list[int]:
    """For each of at most three axes, fastest first, its number in x, y, z.

    An axis of another name has the place of its position, as far as that is free.
    """
    said = [_PLACES.get(axis.role) for axis in axes]
    named = [place for place in said if place is not None]
    if len(set(named)) < len(named) or any(place >= len(axes) for place in named):
        return list(range(len(axes)))
    free = [place for place in range(len(axes)) if place not in named]
    found: list[int] = []
    for position, place in enumerate(said):
        if place is not None:
            found.append(place)
            continue
        found.append(position if position in free else free[0])
        free.remove(found[-1])
    return found


def placement(
    axes: Sequence[Axis], affine: Directions
) -> tuple[list[Sequence[float]], Sequence[float]]:
    """For each of at most three axes, fastest first, the step from one element to the next.

    In x, y and z of ITK's frame, as many as there are axes; and the place of the first element.
    """
    if affine is not None and {axis.role for axis in axes} == set(_PLACES):
        return [affine[_PLACES[axis.role]] for axis in axes], affine[3]
    steps: list[Sequence[float]] = []
    origin = [0.0] * len(axes)
    for axis, place in zip(axes, directions(axes), strict=True):
        step = [0.0] * len(axes)
        step[place] = axis.spacing or 1.0
        origin[place] = axis.origin
        steps.append(tuple(step))
    return steps, tuple(origin)


def is_spatial(axis: Axis) -> bool:
    """Whether an axis may be one of space: it is none of time or of channels."""
    return axis.role not in ("time", "channel")
