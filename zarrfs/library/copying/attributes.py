"""Attributes with another form in the other version of Zarr: OME-Zarr, and CF's ``_FillValue``.

OME-Zarr 0.4 has Zarr 2, 0.5 has Zarr 3:
https://ngff.openmicroscopy.org/0.5/. The members are the same; 0.5 has them, and one version for
all, below ``ome``.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.format.making.new_array import NewArray
from zarrfs.format.metadata.members import plain
from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.format.registry import parse_data_type
from zarrfs.format.text_forms import read_fill
from zarrfs.views.facts.missing import typed

_MEMBERS = (
    "multiscales", "omero", "labels", "image-label", "plate", "well", "bioformats2raw.layout",
    "series",
)  # fmt: skip
_VERSIONED = ("multiscales", "plate", "well", "image-label")
_OLD, _NEW = "0.4", "0.5"


def in_version(attributes: Mapping[str, Any], zarr_format: int) -> dict[str, Any]:
    """The attributes of a node as a node of ``zarr_format`` has them."""
    given: dict[str, Any] = plain(attributes)
    found = given.get("ome")
    if zarr_format == 2 and isinstance(found, dict) and found.get("version") == _NEW:
        del given["ome"]
        del found["version"]
        return given | _with_version(found, _OLD)
    old = {name: given[name] for name in _MEMBERS if name in given}
    versions = {v for name in _VERSIONED if name in old for v in _versions(old[name])}
    if zarr_format == 3 and "ome" not in given and old and versions <= {_OLD}:
        if not versions and not {"labels", "bioformats2raw.layout"} & set(old):
            return given
        rest = {name: value for name, value in given.items() if name not in old}
        return rest | {"ome": {"version": _NEW, **_with_version(old, None)}}
    return given


def axis_names(attributes: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the axes of each array of a group's image; 0.5 wants the array to have them."""
    images = attributes.get("ome", attributes)
    images = images.get("multiscales") if isinstance(images, Mapping) else None
    names: dict[str, list[str]] = {}
    for image in images if isinstance(images, list) else ():
        try:
            axes = [axis if isinstance(axis, str) else str(axis["name"]) for axis in image["axes"]]
            names.update({str(each["path"]): axes for each in image["datasets"]})
        except (KeyError, TypeError):
            continue
    return names


def _versions(value: Any) -> set[Any]:
    parts = value if isinstance(value, list) else [value]
    return {part["version"] for part in parts if isinstance(part, dict) and "version" in part}


def _with_version(members: Mapping[str, Any], version: str | None) -> dict[str, Any]:
    def changed(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        rest = {name: value for name, value in part.items() if name != "version"}
        return rest if version is None else {"version": version, **rest}

    return {
        name: value
        if name not in _VERSIONED
        else [changed(part) for part in value]
        if isinstance(value, list)
        else changed(value)
        for name, value in members.items()
    }


# The CF attribute ``_FillValue`` in the other version of Zarr, as xarray reads and writes it.
# In Zarr 2 the fill value of an array with named axes is ``_FillValue`` itself. In Zarr 3 it is an
# attribute, in which floating point numbers are in Base64, and the fill value masks nothing.

_NAME = "_FillValue"
# One of them says that an array follows CF.
_CF = frozenset(
    (_NAME, "units", "standard_name", "long_name", "coordinates", "calendar", "cell_methods",
     "grid_mapping", "scale_factor", "add_offset", "missing_value")
)  # fmt: skip


def with_missing(
    array: NewArray, attributes: Mapping[str, Any], source: ArrayMetadata, *, in_group: bool
) -> tuple[NewArray, Mapping[str, Any]]:
    """An array and its attributes that mask the same elements as the source does.

    in_group : whether it is one of a dataset of xarray, and not a single array.
    """
    data_type = parse_data_type(array.data_type)
    kind = data_type.dtype.kind
    if not source.dimension_names or kind not in "fiu":
        return array, attributes
    given = attributes.get(_NAME)
    if array.zarr_format == 3 and kind == "f" and isinstance(given, int | float):
        # As NetCDF has it, and as xarray does not read it.
        return array, {**attributes, _NAME: _encoded(np.float64(given))}
    if array.zarr_format == source.zarr_format:
        return array, attributes
    if array.zarr_format == 3:
        if not source.has_fill or _NAME in attributes:
            return array, attributes
        value = data_type.element(data_type.fill_bytes(array.fill_value))[()]
        return array, {**attributes, _NAME: _encoded(value)}
    fill = data_type.element(data_type.fill_bytes(array.fill_value))
    if source.zarr_format != 3 or not (in_group or _CF & set(attributes)):
        return array, attributes
    if _NAME not in attributes and bool(np.isnan(fill)):
        return array, attributes
    rest = {name: value for name, value in attributes.items() if name != _NAME}
    found = typed(attributes.get(_NAME), data_type.dtype)
    if found is None or found.size != 1:
        return replace(array, fill_value=None), rest
    return replace(array, fill_value=read_fill(str(found.reshape(-1)[0]), data_type)), rest


def _encoded(value: Any) -> Any:
    if value.dtype.kind != "f":
        return int(value)
    return base64.standard_b64encode(struct.pack("<d", float(value))).decode()
