"""NRRD, detached (``.nhdr``) and attached (``.nrrd``).

https://teem.sourceforge.net/nrrd/format.html. ITK, VTK, teem, 3D Slicer and ParaView read it.
Its lists have the fastest axis first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.headers.described import Axis, Described
from zarrfs.views.headers.form import Form, Plan
from zarrfs.views.headers.text import ascii_text, digits

TYPES = {
    "b1": "uint8",
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "u2": "uint16",
    "i4": "int32",
    "u4": "uint32",
    "i8": "int64",
    "u8": "uint64",
    "f4": "float",
    "f8": "double",
}
_MOST_AXES = 16
_ALIGNMENT = 64
_SPACE = ("x", "y", "z")


def nhdr(array: Described) -> Plan:
    """A header that names the file with the elements."""
    return _plan(array, f"data file: {array.data_file}\n", None)


def nrrd(array: Described) -> Plan:
    """Header and elements."""
    return _plan(array, "", array.layout)


def _plan(array: Described, data_file: str, layout: FlatConfig | None) -> Plan:
    name = array.type_in(TYPES, "NRRD")
    array.check("NRRD", 1, _MOST_AXES, longest=2**63 - 1)
    return partial(_form, array, name, data_file, layout)


def _form(array: Described, name: str, data_file: str, layout: FlatConfig | None) -> Form:
    axes = array.axes[::-1]
    lines = [
        "NRRD0004",
        f"type: {name}",
        f"dimension: {len(axes)}",
        *_space(axes),
        f"sizes: {' '.join(str(axis.length) for axis in axes)}",
        *_placement(array, axes),
    ]
    if array.channels:
        lines.append(f"kinds: vector{' domain' * (len(axes) - 1)}")
    if any(axis.name for axis in axes):
        lines.append(f"labels: {' '.join(_quoted(axis.name) for axis in axes)}")
    if array.data_type.item_size > 1:
        lines.append(f"endian: {array.layout.byteorder}")
    lines.append("encoding: raw")
    text = "".join(f"{line}\n" for line in lines) + data_file
    if layout is not None:
        # A comment that aligns the elements, so that programs can map them as numbers.
        text += "#" + "." * (-(len(text) + 3) % _ALIGNMENT) + "\n"
    text += "\n"
    return Form(text.encode("ascii"), layout)


def _is_space(axes: tuple[Axis, ...]) -> bool:
    """Whether all axes are axes of space, so that the array has a place in space."""
    names = tuple(axis.name.lower() for axis in axes)
    placed = any(axis.origin for axis in axes)
    return placed and 1 < len(axes) <= len(_SPACE) and names == _SPACE[: len(axes)]


def _space(axes: tuple[Axis, ...]) -> Iterator[str]:
    if _is_space(axes):
        yield f"space dimension: {len(axes)}"
        yield f"space units: {' '.join(_quoted(axis.unit) for axis in axes)}"


def _placement(array: Described, axes: tuple[Axis, ...]) -> Iterator[str]:
    if _is_space(axes):
        vectors = [
            ["0"] * i + [digits(axis.spacing or 1.0)] + ["0"] * (len(axes) - 1 - i)
            for i, axis in enumerate(axes)
        ]
        directions = ["(" + ",".join(vector) + ")" for vector in vectors]
        yield f"space directions: {' '.join(directions)}"
        yield f"space origin: ({','.join(digits(axis.origin) for axis in axes)})"
        return
    if array.has_spacing:
        yield f"spacings: {' '.join(_or_nan(axis.spacing) for axis in axes)}"
    if any(axis.unit for axis in axes):
        yield f"units: {' '.join(_quoted(axis.unit) for axis in axes)}"


def _or_nan(value: float | None) -> str:
    return "nan" if value is None else digits(value)


def _quoted(text: str) -> str:
    return '"' + ascii_text(text).replace("\\", " ").replace('"', " ") + '"'
