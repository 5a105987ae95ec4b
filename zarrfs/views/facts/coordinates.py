"""Coordinates along one axis, from an array of one axis with the name of that axis.

This is how CF, netCDF, xarray and GDAL say where elements lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarrfs.array.neighbours import Neighbour, Neighbours
from zarrfs.views.facts.as_cf import as_cf
from zarrfs.views.facts.facts import Around, Axis, Coordinates, Role, role_of
from zarrfs.views.facts.missing import as_meant, missing_values, packing
from zarrfs.views.facts.text import plain

_TOLERANCE = 1e-3
"""GDAL's: the part of a step by which steps may differ."""
_STANDARD_NAMES: dict[str, Role] = {
    "projection_x_coordinate": "x",
    "projection_y_coordinate": "y",
    "grid_longitude": "x",
    "grid_latitude": "y",
    "longitude": "x",
    "latitude": "y",
    "time": "time",
}
_ENDS: dict[str, Role] = {
    **dict.fromkeys(("_north", "_N", "N"), "y"),
    **dict.fromkeys(("_east", "_E", "E"), "x"),
}
_UNITS: dict[str, Role] = {
    f"{degree}{end}": role for degree in ("degree", "degrees") for end, role in _ENDS.items()
}
_AXES: dict[str, Role] = {"X": "x", "Y": "y", "Z": "z", "T": "time"}


def coordinates_in(neighbours: Neighbours) -> dict[str, Coordinates]:
    """The coordinates in each array that has any."""
    found = {
        name: _coordinates(neighbour)
        for name, neighbour in neighbours.items()
        if not _is_along_another(name, neighbour)
    }
    return {name: along for name, along in found.items() if along is not None}


def _is_along_another(name: str, neighbour: Neighbour) -> bool:
    """Whether an array says that its axis has another name than it."""
    said = neighbour.metadata.dimension_names
    return bool(said) and said[0] not in (None, "", name)


def _coordinates(neighbour: Neighbour) -> Coordinates | None:
    values, metadata = neighbour.values, as_cf(neighbour.metadata)
    if values is None or metadata.layout.data_type.dtype.kind in "mM":
        return None
    scale, offset = packing(metadata.attributes)
    meant = as_meant(values, metadata)
    places = meant.astype(np.float64)
    for missing in missing_values(metadata):
        places[meant == missing] = np.nan
    exact = values.dtype.kind != "f"
    error = 0.0 if exact else 2 * float(np.finfo(values.dtype).eps) * float(np.abs(places).max())
    with np.errstate(all="ignore"):
        places = places * (1.0 if scale is None else scale) + (offset or 0.0)
    return Coordinates(metadata, values, _regular(places, error * abs(scale or 1.0)))


def _regular(places: NDArray[Any], error: float) -> tuple[float, float | None] | None:
    """
    error : of rounding.
    """
    if not np.isfinite(places).all():
        return None
    if len(places) == 1:
        return float(places[0]), None
    with np.errstate(all="ignore"):
        step = float(places[-1] - places[0]) / (len(places) - 1)
        off = float(np.abs(np.diff(places) - step).max())
    allowed = max(_TOLERANCE * abs(step), min(error, abs(step) / 4))
    if not step or not math.isfinite(step) or off > allowed:
        return None
    return float(places[0]), step


def along(axes: Sequence[Axis], around: Around) -> Iterator[Axis]:
    """The axes with what their coordinates say."""
    for axis in axes:
        found = around.coordinates.get(axis.name)
        if found is None or found.metadata.shape != (axis.length,):
            yield axis
            continue
        unit = axis.unit or plain(found.metadata.attributes.get("units"), 64)
        role = role_of(axis.name) or cf_role(found.metadata.attributes, unit)
        known = axis._replace(coordinates=found, role=role, unit=unit)
        if axis.spacing is None and found.regular is not None:
            origin, spacing = found.regular
            known = known._replace(origin=origin, spacing=spacing)
        yield known


def cf_role(attributes: Mapping[str, Any], unit: str) -> Role:
    """The role of an axis with these attributes of its coordinates, as CF has it."""
    said = _STANDARD_NAMES.get(plain(attributes.get("standard_name")))
    found = said or _AXES.get(plain(attributes.get("axis"))) or _UNITS.get(unit)
    if found:
        return found
    return "time" if " since " in unit else "z" if attributes.get("positive") else ""
