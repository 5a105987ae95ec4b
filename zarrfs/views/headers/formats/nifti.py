"""NIfTI-1, and NIfTI-2 if an axis is longer than 32767: https://nifti.nimh.nih.gov.

nibabel, ITK, FSL, AFNI and SPM read it. Its fastest axis is the first one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.text import ascii_text
from zarrfs.views.facts.units import metres, ratio, seconds
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan
from zarrfs.views.headers.space import Directions, is_spatial, placement

_COLOURS = {3: 128, 4: 2304}
"""The codes of bytes of red, green and blue, and of these and alpha."""

_MOST_AXES = 7
_LONGEST = 32767
# Codes of units, the largest first. Lengths and times that it does not have take the next smaller.
_METRES = {1.0: 1, 1e-3: 2, 1e-6: 3}
_SECONDS = {1.0: 8, 1e-3: 16, 1e-6: 24}
_ALIGNED = 2
"""The affine holds beside other files, here MetaImage and NRRD, and not in a scanner."""


class _Version(NamedTuple):
    """
    size : of the header in bytes; the elements follow it.
    magic : the text by which programs recognise it.
    fields : the place and the form, as `struct` has it, of each field that is not zero.
    """

    size: int
    magic: bytes
    fields: Mapping[str, tuple[int, str]]


_FIRST = _Version(352, b"n+1\0", {
    "size": (0, "i"), "regular": (38, "c"), "dim": (40, "8h"), "type": (70, "2h"),
    "pixdim": (76, "8f"), "start": (108, "f"), "scaling": (112, "2f"), "units": (123, "B"),
    "time": (136, "f"), "description": (148, "80s"), "aligned": (254, "h"), "affine": (280, "12f"),
    "name": (328, "16s"), "magic": (344, "4s"),
})  # fmt: skip
_SECOND = _Version(544, b"n+2\0\r\n\x1a\n", {
    "size": (0, "i"), "magic": (4, "8s"), "type": (12, "2h"), "dim": (16, "8q"),
    "pixdim": (104, "8d"), "start": (168, "q"), "scaling": (176, "2d"), "time": (216, "d"),
    "description": (240, "80s"), "aligned": (348, "i"), "affine": (400, "12d"), "units": (500, "i"),
    "name": (508, "16s"),
})  # fmt: skip


def nii(array: Described) -> Plan:
    """Two to seven axes: those of space come first, then time, then channels and others."""
    code = int(array.type_in("NIfTI"))
    axes = list(array.axes[::-1])
    if array.channels:
        if array.code != "u1" or array.channels not in _COLOURS:
            raise Inexpressible("NIfTI has no channels but the colours of uint8")
        code, axes = _COLOURS[array.channels], axes[1:]
    array.check("NIfTI", 2, _MOST_AXES)
    return partial(_form, array, code, _placed(axes))


def _placed(axes: list[Axis]) -> list[Axis]:
    """Axes of space, time, and others, with axes of one element where there is none."""
    found: list[Axis] = []
    for axis in axes:
        if is_spatial(axis) and axis.role and len(found) > 2:
            raise Inexpressible("NIfTI has axes of space before all others")
        least = {"time": 3, "channel": 4}.get(axis.role, 0)
        if least > len(found) and not found:
            raise Inexpressible("NIfTI has axes of space before all others")
        found += [Axis(1)] * (least - len(found))
        found.append(axis)
    if len(found) > _MOST_AXES:
        raise Inexpressible(f"NIfTI takes at most {_MOST_AXES} axes")
    # Only in space can places fall.
    return found[:3] + [Axis(axis.length) if axis.falls else axis for axis in found[3:]]


def _form(array: Described, code: int, axes: list[Axis]) -> Form:
    lengths = [axis.length for axis in axes] + [1] * (_MOST_AXES - len(axes))
    units, factors = _units(axes)
    spacings = [(axis.spacing or 1.0) * f for axis, f in zip(axes, factors, strict=True)]
    spacings += [1.0] * (_MOST_AXES - len(spacings))
    origins = [axis.origin * f for axis, f in zip(axes, factors, strict=True)]
    placed = [
        axis._replace(spacing=spacing, origin=origin)
        for axis, spacing, origin in zip(axes[:3], spacings[:3], origins, strict=False)
    ]
    known = array.facts.affine and [[n * factors[0] for n in part] for part in array.facts.affine]
    affine: list[float] | None = _affine(placed, known)
    if not all(abs(number) < 3e38 for number in (*spacings, *(affine or []))):
        spacings, affine = [1.0] * _MOST_AXES, None
    time = origins[3] if len(axes) > 3 and axes[3].role == "time" else 0.0
    facts = array.facts
    real = facts.packed and array.code[:1] in ("i", "u", "f")
    scaling = (1.0 if facts.scale is None else facts.scale, facts.offset or 0.0)
    version = _FIRST if max(lengths) <= _LONGEST else _SECOND
    values: dict[str, Sequence[float | bytes]] = {
        "size": [version.size - 4],
        "magic": [version.magic],
        "regular": [b"r"],
        "start": [version.size],
        "type": [code, array.data_type.item_size * 8 * max(1, array.channels)],
        "dim": [len(axes), *lengths],
        "pixdim": [1.0, *map(abs, spacings)],
        "time": [time if abs(time) < 3e38 else 0.0],
        "units": [units],
        "scaling": scaling if real and max(map(abs, scaling)) < 3e38 else (1.0, 0.0),
        "name": [ascii_text(array.name, 15).encode()],
        "description": [ascii_text(facts.description or array.name, 79).encode()],
        # Its first three rows, unless the numbers are too large.
        **({} if affine is None else {"aligned": [_ALIGNED], "affine": affine}),
    }
    header = bytearray(version.size)
    for name in values.keys() & version.fields.keys():
        place, form = version.fields[name]
        struct.pack_into((">" if array.big else "<") + form, header, place, *values[name])
    return Form(bytes(header), array.layout)


def _affine(axes: list[Axis], known: Directions) -> list[float]:
    """From indices to x, y and z that grow to the right, anterior and superior."""
    steps, origin = placement([*axes, *[Axis(1)] * (3 - len(axes))], known)
    # The axes x and y of `placement` grow to the left and to posterior. No negative zeros.
    rows = zip((-1.0, -1.0, 1.0), *steps, origin, strict=True)
    return [sign * number + 0.0 for sign, *row in rows for number in row]


def _units(axes: list[Axis]) -> tuple[int, list[float]]:
    """Code of the units of space and time, and the factor for each axis."""
    lengths = [metres(axis.unit) for axis in axes[:3]]
    known = [length for length in lengths if length is not None]
    # The unit of the fastest axis that has one. Degrees are no metres: such places have no unit.
    placed = [bool(axis.spacing or axis.origin) for axis in axes[:3]]
    if any(here and not length for here, length in zip(placed, lengths, strict=True)):
        known, lengths = [], [None] * len(lengths)
    base, space = _code(known[0], _METRES) if known else (1.0, 0)
    factors = [1.0 if length is None else ratio(length, base) for length in lengths]
    time = 0
    for axis in axes[3:]:
        period = seconds(axis.unit) if axis is axes[3] else None
        if period is None:
            factors.append(1.0)
            continue
        second, time = _code(period, _SECONDS)
        factors.append(ratio(period, second))
    return space | time, factors


def _code(unit: float, codes: Mapping[float, int]) -> tuple[float, int]:
    """The unit of NIfTI for another one, and its code."""
    smaller = [(base, code) for base, code in codes.items() if base <= unit]
    return (smaller or [*codes.items()][-1:])[0]
