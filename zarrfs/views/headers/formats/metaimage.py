"""MetaImage, detached (``.mhd``) and attached (``.mha``).

https://docs.itk.org/en/latest/learn/metaio.html. ITK, VTK and ImageJ read it. Its lists have the
fastest axis first.
"""

from __future__ import annotations

from functools import partial

from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.facts.text import digits
from zarrfs.views.facts.units import metres
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Plan
from zarrfs.views.headers.space import directions, is_spatial, placement

_UNITS = {1e-6: "um", 1e-3: "mm", 1e-2: "cm"}
_SPACE = {"x", "y", "z"}
_MOST_AXES = 10
_ALIGNMENT = 64


def mhd(array: Described) -> Plan:
    """A header that names the file with the elements."""
    return _plan(array, array.data_file, None)


def mha(array: Described) -> Plan:
    """Header and elements."""
    return _plan(array, "LOCAL", array.layout)


def _plan(array: Described, data_file: str, layout: FlatConfig | None) -> Plan:
    name = array.check("MetaImage", 2, _MOST_AXES)
    return partial(_form, array, name, data_file, layout)


def _form(array: Described, name: str, data_file: str, layout: FlatConfig | None) -> Form:
    axes = array.image_axes[::-1]
    places = directions(axes[:3]) + list(range(3, len(axes)))
    if len(axes) > 3 and not all(map(is_spatial, axes[:3])):
        places = list(range(len(axes)))
    count = len(axes)
    # One row for each axis: its direction.
    signs = [-1 if axis.falls else 1 for axis in axes]
    rows = [
        [float(sign if place == column else 0) for column in range(count)]
        for place, sign in zip(places, signs, strict=True)
    ]
    origin = [axis.origin for _, axis in sorted(zip(places, axes, strict=True))]
    oblique = array.facts.affine is not None and len({axis.role for axis in axes[:3]} & _SPACE) == 3
    if oblique:
        steps, origin[:3] = placement(axes[:3], array.facts.affine)
        for row, step, axis in zip(rows, steps, axes, strict=False):
            row[:3] = [part / axis.size for part in step]
    lines = [
        "ObjectType = Image",
        f"NDims = {count}",
        "BinaryData = True",
        f"BinaryDataByteOrderMSB = {array.big}",
        "CompressedData = False",
    ]
    if oblique or places != sorted(places) or -1 in signs:
        lines.append(f"TransformMatrix = {' '.join(digits(part) for row in rows for part in row)}")
    lines += [
        f"Offset = {' '.join(map(digits, origin))}",
        f"ElementSpacing = {' '.join(digits(axis.size) for axis in axes)}",
        f"DimSize = {' '.join(str(axis.length) for axis in axes)}",
    ]
    units = {metres(axis.unit) for axis in axes if is_spatial(axis)}
    if len(units) == 1 and (unit := _UNITS.get(units.pop() or 0.0)):
        lines.insert(5, f"DistanceUnits = {unit}")
    if array.channels:
        lines.append(f"ElementNumberOfChannels = {array.channels}")
    lines.append(f"ElementType = {name}")
    end = f"ElementDataFile = {data_file}\n"
    text = "".join(f"{line}\n" for line in lines)
    if layout is not None:
        # Align the elements, so that programs can map them as numbers.
        padding = -(len(text) + len("Comment = \n") + len(end)) % _ALIGNMENT
        text += f"Comment = {'.' * padding}\n"
    return Form((text + end).encode("ascii"), layout)
