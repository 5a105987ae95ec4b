"""NRRD, detached (``.nhdr``) and attached (``.nrrd``).

https://teem.sourceforge.net/nrrd/format.html. ITK, VTK, teem, 3D Slicer and ParaView read it.
Its lists have the fastest axis first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.facts.facts import Affine, Axis
from zarrfs.views.facts.text import ascii_text, digits
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Plan
from zarrfs.views.headers.space import directions, placement

_MOST_AXES = 16
_ALIGNMENT = 64


def nhdr(array: Described) -> Plan:
    """A header that names the file with the elements."""
    return _plan(array, f"data file: {array.data_file}\n", None)


def nrrd(array: Described) -> Plan:
    """Header and elements."""
    return _plan(array, "", array.layout)


def _plan(array: Described, data_file: str, layout: FlatConfig | None) -> Plan:
    name = array.check("NRRD", 1, _MOST_AXES, longest=2**63 - 1)
    return partial(_form, array, name, data_file, layout)


def _form(array: Described, name: str, data_file: str, layout: FlatConfig | None) -> Form:
    axes = array.axes[::-1]
    space = _space(array)
    lines = [
        "NRRD0004",
        f"type: {name}",
        f"dimension: {len(axes)}",
        *_space_lines(axes, space),
        f"sizes: {' '.join(str(axis.length) for axis in axes)}",
        *_placement(axes, space, array.facts.affine),
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


def _space(array: Described) -> range:
    """The axes, fastest first, that have a place in one space; none if the space says nothing.

    Two or three of them, after the channels. ITK opens no file with others.
    """
    axes = array.axes[::-1]
    found = range(1 if array.channels else 0, len(axes))
    if not 1 < len(found) <= 3:
        return range(0)
    placed = any(axes[i].origin or axes[i].falls for i in found)
    in_space = all(axes[i].role in ("x", "y", "z") for i in found)
    turned = directions([axes[i] for i in found]) != list(range(len(found)))
    irregular = any(axes[i].irregular for i in found)
    oblique = array.facts.affine is not None and in_space
    return found if (oblique or turned or (placed and in_space)) and not irregular else range(0)


def _space_lines(axes: tuple[Axis, ...], space: range) -> Iterator[str]:
    if space:
        units = [""] * len(space)
        for i, place in zip(space, directions(axes[space.start : space.stop]), strict=True):
            units[place] = axes[i].unit
        yield f"space dimension: {len(space)}"
        if any(units):
            yield f"space units: {' '.join(map(_quoted, units))}"


def _placement(axes: tuple[Axis, ...], space: range, affine: Affine | None) -> Iterator[str]:
    """Spacing, origin and units of all axes."""
    if space:
        steps, origin = placement(axes[space.start : space.stop], affine)
        vectors = ["none"] * space.start + [_vector(step) for step in steps]
        yield f"space directions: {' '.join(vectors)}"
        yield f"space origin: {_vector(origin)}"
        return
    known = any(axis.spacing is not None for axis in axes)
    if known and any(axis.origin for axis in axes):
        # ITK ignores all origins where one is not a number.
        yield f"spacings: {' '.join(digits(axis.spacing or 1.0) for axis in axes)}"
        yield f"axis mins: {' '.join(digits(axis.origin) for axis in axes)}"
        yield f"centerings:{' node' * len(axes)}"
    elif known:
        yield f"spacings: {' '.join(_or_nan(axis.spacing) for axis in axes)}"
    if any(axis.unit for axis in axes):
        yield f"units: {' '.join(_quoted(axis.unit) for axis in axes)}"


def _vector(parts: Sequence[float]) -> str:
    return f"({','.join(map(digits, parts))})"


def _or_nan(value: float | None) -> str:
    return "nan" if value is None else digits(value)


def _quoted(text: str) -> str:
    return '"' + ascii_text(text).replace("\\", " ").replace('"', " ") + '"'
