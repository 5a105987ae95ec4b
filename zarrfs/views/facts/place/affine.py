"""The attribute ``affine``, of arrays that were images of NIfTI: as nibabel has it.

It leads from indices along the axes x, y and z to millimetres that grow to the right, anterior and
superior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.views.facts.facts import Affine, Axis, Role
from zarrfs.views.facts.text import numbers

_ROLES: tuple[Role, ...] = ("x", "y", "z")
_LARGEST = 1e30


def with_affine(
    attributes: Mapping[str, Any], axes: Sequence[Axis]
) -> tuple[list[Axis], Affine | None]:
    """The axes as the attribute places them; and `Facts.affine` if they lie obliquely.

    An array of three axes without names has them in the order x, y, z, as nibabel has.
    """
    found = list(axes)
    columns = _columns(attributes.get("affine"))
    if columns is None:
        return found, None
    if len(axes) == 3 and not any(axis.name for axis in axes):
        found = [axis._replace(role=role) for axis, role in zip(axes, _ROLES, strict=True)]
    at = [[i for i, axis in enumerate(found) if axis.role == role] for role in _ROLES]
    if any(len(places) != 1 for places in at):
        return list(axes), None
    straight = all(not columns[i][j] for i in range(3) for j in range(3) if i != j)
    for number, (i,) in enumerate(at):
        step = columns[number][number] if straight else math.hypot(*columns[number])
        origin = columns[3][number] if straight else 0.0
        found[i] = found[i]._replace(unit="mm", spacing=step, origin=origin, coordinates=None)
    return found, None if straight else columns


def oriented(axes: Sequence[Axis], directions: Sequence[tuple[int, float] | None]) -> Affine | None:
    """`Facts.affine` of axes with known directions in a body; None if they are those of x, y, z.

    directions : of each axis, as `ome.OmeAxis` has it.
    """
    at = {axis.role: i for i, axis in enumerate(axes) if axis.role in _ROLES}
    if [axis.role in _ROLES for axis in axes].count(True) != 3 or len(at) != 3:
        return None
    known = [(axes[at[role]], directions[at[role]]) for role in _ROLES]
    said = [direction for _, direction in known if direction is not None]
    if {place for place, _ in said} != {0, 1, 2} or len({axis.unit for axis, _ in known}) > 1:
        return None
    if said == [(0, 1.0), (1, 1.0), (2, 1.0)]:
        return None
    columns = [[0.0] * 3 for _ in range(4)]
    for column, (axis, _), (place, sign) in zip(columns, known, said, strict=False):
        column[place] = sign * (axis.spacing or 1.0)
        columns[3][place] = sign * axis.origin + 0.0
    return tuple(map(tuple, columns))


def affine_of_part(affine: Affine, axes: Sequence[Axis], origin: Sequence[int]) -> Affine:
    """That of a box that begins at ``origin``, an index along each of the axes."""
    start = list(affine[3])
    for axis, first in zip(axes, origin, strict=True):
        if axis.role in _ROLES:
            step = affine[_ROLES.index(axis.role)]
            start = [place + first * part for place, part in zip(start, step, strict=True)]
    return (*affine[:3], tuple(start))


def _columns(value: Any) -> Affine | None:
    """The columns of three or four rows of four numbers, in ITK's frame; None for all else."""
    if not isinstance(value, list | tuple) or len(value) not in (3, 4):
        return None
    rows = [numbers(row, 4) for row in value]
    if len(rows) == 4 and rows.pop() != (0.0, 0.0, 0.0, 1.0):
        return None
    known = [row for row in rows if row is not None]
    if len(known) < 3 or any(abs(part) > _LARGEST for row in known for part in row):
        return None
    signs = (-1.0, -1.0, 1.0)
    # No negative zeros.
    columns = tuple(
        tuple(sign * row[i] + 0.0 for sign, row in zip(signs, known, strict=True)) for i in range(4)
    )
    steps = [math.hypot(*column) for column in columns[:3]]
    return columns if all(step > 1 / _LARGEST for step in steps) else None
