"""The dimensions of the datasets of a file, in netCDF's form, and their coordinates.

Axes with the same name, length and coordinates are one dimension. An array of one axis, with the
name of that axis, contains the coordinates of that dimension.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from zarrfs.views.facts.coordinates import cf_role
from zarrfs.views.facts.facts import Axis, Coordinates, role_of
from zarrfs.views.facts.gather import gather
from zarrfs.views.facts.place.crs import kind_of
from zarrfs.views.headers.attributes import TypedAttribute, typed_attributes
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.hdf5.file import Dataset
from zarrfs.views.headers.hdf5.messages import number_type

_MOST_COORDINATES = 1 << 18
"""Coordinates in a file. Axes beyond that have none: they would make a header too large."""


class Regular(NamedTuple):
    """Coordinates at equal distances.

    standard_name : CF's name for them; empty: none.
    """

    first: float
    step: float
    unit: str
    standard_name: str = ""


class Dimension(NamedTuple):
    name: str
    length: int
    coordinates: Regular | Coordinates | None


class Dimensions:
    """The dimensions of all arrays of a group in a file.

    taken : names of other things in the group.
    """

    def __init__(self, arrays: Mapping[str, Described], taken: Collection[str] = ()) -> None:
        self._arrays = arrays
        self._taken = taken
        self._room = _MOST_COORDINATES
        # The name of each dimension in the file.
        self._names: dict[Dimension, str] = {}
        # Dimensions whose coordinates are an array of the file, which keeps its name.
        self._own = {
            (name, array.axes[0].length)
            for name, array in arrays.items()
            if len(array.axes) == 1 and array.axes[0].name == name
        }
        self._of: dict[str, list[str]] = {}
        any_named = any(axis.name for array in arrays.values() for axis in array.axes)
        for name, array in arrays.items():
            regular = coordinates_of(array)
            named = [bool(axis.name) for axis in array.axes]
            # netCDF gives an axis without a dimension that of any other axis of its length.
            stem = "dim" if any(named) else f"{name}_dim"
            self._of[name] = [
                self._name(axis.name or f"{stem}_{i}", axis, along)
                for i, (axis, along) in enumerate(zip(array.axes, regular, strict=True))
                if any(named) or (any_named and len(arrays) > 1)
            ]

    def of(self, name: str) -> list[str]:
        """The dimension of each axis of an array; none in a file without any names."""
        return self._of[name]

    def scales(self) -> list[Dataset]:
        """The scales of dimensions that are no arrays of the file."""
        return [_scale(name, dimension) for dimension, name in self._names.items()]

    def _name(self, said: str, axis: Axis, regular: Regular | Coordinates | None) -> str:
        if (axis.name, axis.length) in self._own:
            return axis.name
        base = name = said.replace("/", "_").strip() or "dim"
        dimension = Dimension(base, axis.length, regular)
        if (known := self._names.get(dimension)) is not None:
            return known
        if regular is not None:
            if axis.length > self._room:
                return self._name(said, axis, None)
            self._room -= axis.length
        taken = {*self._names.values(), *self._arrays, *self._taken}
        number = axis.length
        while name in taken:
            name = f"{base}_{number}"
            number += 1
        self._names[dimension] = name
        return name


def coordinates_of(array: Described) -> list[Regular | Coordinates | None]:
    """The coordinates along each axis of the file; None for those that are not known."""
    found: list[Regular | Coordinates | None] = [None] * len(array.axes)
    for i, axis in enumerate(array.axes):
        if axis.coordinates is not None:
            found[i] = axis.coordinates
        elif axis.name and axis.spacing is not None:
            found[i] = Regular(axis.origin, axis.spacing, axis.unit)
    facts = array.facts
    transform = facts.georeference.transform
    if transform is None or facts.y_axis is None or facts.x_axis is None:
        return found
    left, width, row_x, top, column_y, height = transform
    if row_x or column_y:
        return found
    kind = kind_of(facts.georeference.crs)
    names = {
        "geographic": (("latitude", "degrees_north"), ("longitude", "degrees_east")),
        "projected": (("projection_y_coordinate", ""), ("projection_x_coordinate", "")),
    }.get(kind or "", (("", ""), ("", "")))
    for number, start, step, (name, unit) in (
        (facts.y_axis, top, height, names[0]),
        (facts.x_axis, left, width, names[1]),
    ):
        i = len(found) - 1 - number if array.layout.order == "F" else number
        if found[i] is None and array.axes[i].name:
            found[i] = Regular(start + step / 2, step, unit, name)
    return found


def _scale(name: str, dimension: Dimension) -> Dataset:
    """The dimension scale of an axis, with or without coordinates."""
    length, known = dimension.length, dimension.coordinates
    if known is None:
        kind = number_type(np.dtype(">f4"))
        return Dataset(name, kind, (length,), 4 * length, scale=True, absent=True)
    fill = None
    if isinstance(known, Coordinates):
        # netCDF has no float16.
        dtype = np.dtype("f4") if known.values.dtype == np.float16 else known.values.dtype
        values = known.values.astype(dtype.newbyteorder("<"))
        metadata = known.metadata
        array = Described(metadata.layout.data_type, (), facts=gather(metadata))
        if array.no_data is not None:
            fill = np.array(array.no_data).astype(values.dtype).tobytes()
        own = {**metadata.attributes, **axis_attribute(dimension.name, metadata.attributes)}
        attributes = typed_attributes(own, array)
    else:
        values = known.first + known.step * np.arange(length, dtype=np.float64)
        said = {"standard_name": known.standard_name, "units": known.unit}
        said |= axis_attribute(dimension.name, said)
        attributes = [TypedAttribute(key, text) for key, text in said.items() if text]
    return Dataset(
        name,
        number_type(values.dtype),
        values.shape,
        values.nbytes,
        fill,
        attributes,
        scale=True,
        values=values.tobytes(),
    )


def axis_attribute(name: str, attributes: Mapping[str, Any]) -> Mapping[str, str]:
    """CF's ``axis`` for coordinates along y or x, where only their name says that they are.

    Without it GDAL takes the file for upside down, and for one without a place. It knows ``lat``.
    """
    role, unit = role_of(name), attributes.get("units")
    said = cf_role(attributes, unit if isinstance(unit, str) else "")
    if role not in ("y", "x") or said or name.lower().startswith(("lat", "lon")):
        return {}
    return {"axis": role.upper()}
