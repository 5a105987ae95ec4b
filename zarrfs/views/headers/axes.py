"""Names, units, spacing and origin of axes, from all places where metadata have them.

- ``dimension_names`` of Zarr v3, ``_ARRAY_DIMENSIONS`` of xarray.
- ``dimension_units`` of TensorStore: https://google.github.io/tensorstore/driver/zarr3
- OME-Zarr's ``multiscales``, in the group above: https://ngff.openmicroscopy.org/0.5/
- GDAL's ``_CRS``, rioxarray's ``crs_wkt`` and ``GeoTransform``, GeoZarr's ``proj:`` and
  ``spatial:transform``; of the array, of the variable that its ``grid_mapping`` names, or of the
  group above.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.format.metadata.node import ArrayMetadata
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.elements.region import Region
from zarrfs.views.headers.described import Axis, Described, Georeference
from zarrfs.views.headers.text import number, plain

_UNIT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)?\s*(.*)", re.ASCII)
_MOST_MULTISCALES = 16
_MOST_DATASETS = 64
_LONGEST_WKT = 8192
_LARGEST = 1e30
_GEOREFERENCE = ("_CRS", "crs_wkt", "spatial_ref", "proj:wkt2", "proj:code", "GeoTransform",
                 "spatial:transform")  # fmt: skip


def describe(
    metadata: ArrayMetadata,
    layout: FlatConfig,
    path: str = "",
    above: Mapping[str, Any] | None = None,
    region: Region | None = None,
) -> Described:
    """The description of an array for headers, from any metadata. Raises nothing.

    path : of the array, whose last part is its name.
    above : the attributes of the group that contains the array.
    region : the box of the array in the file; None: all of it.
    """
    above = above or {}
    attributes = metadata.attributes
    name = path.rpartition("/")[2]
    axes = _axes(metadata, name, above)
    georeference = _georeference(attributes) or _georeference(above) or Georeference()
    if region is not None:
        if any(region.origin) or region.shape != metadata.shape:
            georeference = georeference._replace(transform=None)
        axes = [
            axis._replace(length=length, origin=axis.origin + (axis.spacing or 1.0) * first)
            for i, (axis, first, length) in enumerate(
                zip(axes, region.origin, region.shape, strict=True)
            )
            if i not in region.dropped
        ]
    axes = [_within_bounds(axis) for axis in axes]
    if layout.order == "F" and georeference.transform is not None and len(axes) > 1:
        x, width, row_x, y, column_y, height = georeference.transform
        # In an array of two axes only, the columns of the file are the rows of the array.
        turned = (x, row_x, width, y, height, column_y) if len(axes) == 2 else None
        georeference = georeference._replace(transform=turned)
    return Described(
        metadata.layout.data_type,
        tuple(reversed(axes) if layout.order == "F" else axes),
        layout,
        plain(name) or "array",
        metadata.layout.fill if metadata.has_fill else None,
        attributes,
        georeference,
    )


def grid_mapping(attributes: Mapping[str, Any]) -> str:
    """The name of the neighbouring array with this array's georeference; empty if there is none.

    https://cfconventions.org/cf-conventions/cf-conventions.html#grid-mappings-and-projections
    """
    value = attributes.get("grid_mapping")
    return value.split(":", 1)[0].strip() if isinstance(value, str) else ""


def with_grid_mapping(
    above: Mapping[str, Any], grid_mapping: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The attributes of a group with the georeference of one of its arrays."""
    found = {name: grid_mapping[name] for name in _GEOREFERENCE if name in grid_mapping}
    kept = {name: value for name, value in above.items() if not found or name not in _GEOREFERENCE}
    return kept | found


def _axes(metadata: ArrayMetadata, name: str, above: Mapping[str, Any]) -> list[Axis]:
    rank = len(metadata.shape)
    names = list(metadata.dimension_names) or [None] * rank
    axes = [Axis(length, plain(n, 64)) for length, n in zip(metadata.shape, names, strict=True)]
    axes = _with_multiscales(axes, name, above)
    units = metadata.attributes.get("dimension_units")
    if isinstance(units, Sequence) and not isinstance(units, str) and len(units) == rank:
        for i, unit in enumerate(units):
            if (found := _unit(unit)) is not None:
                factor, base = found
                axes[i] = axes[i]._replace(unit=base, spacing=factor)
    return axes


def _within_bounds(axis: Axis) -> Axis:
    """The axis without numbers that would overflow in calculations with floats."""
    spacing = axis.spacing
    if spacing is not None and not 1 / _LARGEST < spacing < _LARGEST:
        spacing = None
    origin = axis.origin if abs(axis.origin) < _LARGEST else 0.0
    return axis._replace(spacing=spacing, origin=origin)


def _unit(value: Any) -> tuple[float, str] | None:
    """Factor and base of one of TensorStore's units: ``"4 nm"`` or ``[4, "nm"]``."""
    if isinstance(value, str):
        match = _UNIT.fullmatch(plain(value))
        if match is None:
            return None
        factor, base = (number(float(match[1])) if match[1] else 1.0), match[2]
    elif isinstance(value, list | tuple) and len(value) == 2:
        factor, base = number(value[0]), plain(value[1])
    else:
        factor, base = number(value), ""
    return None if factor is None or factor <= 0 else (factor, base[:32])


def _with_multiscales(axes: list[Axis], name: str, above: Mapping[str, Any]) -> list[Axis]:
    """The axes with the properties that OME-Zarr has in the group above for ``name``."""
    ome = above.get("ome")
    scales = (ome if isinstance(ome, Mapping) else above).get("multiscales")
    for scale in _dicts(scales)[:_MOST_MULTISCALES]:
        for dataset in _dicts(scale.get("datasets"))[:_MOST_DATASETS]:
            if dataset.get("path") != name:
                continue
            spacing, origin = [1.0] * len(axes), [0.0] * len(axes)
            told = False
            for of in (dataset, scale):
                for step in _dicts(of.get("coordinateTransformations"))[:4]:
                    told |= _transform(step, spacing, origin)
            described = _dicts(scale.get("axes"))
            if len(described) != len(axes):
                described = [{}] * len(axes)
            return [
                axis._replace(
                    name=axis.name or plain(said.get("name"), 64),
                    unit=plain(said.get("unit"), 32),
                    spacing=spacing[i] if told else None,
                    origin=origin[i],
                )
                for i, (axis, said) in enumerate(zip(axes, described, strict=True))
            ]
    return axes


def _transform(step: Mapping[str, Any], spacing: list[float], origin: list[float]) -> bool:
    """Apply one scale or translation; False for any other transformation."""
    kind = step.get("type")
    values = _numbers(step.get(kind), len(spacing)) if isinstance(kind, str) else None
    if values is None or kind not in ("scale", "translation"):
        return False
    for i, value in enumerate(values):
        if kind == "translation":
            origin[i] += value
        elif value > 0:
            spacing[i] *= value
            origin[i] *= value
    return True


def _georeference(attributes: Mapping[str, Any]) -> Georeference | None:
    crs = attributes.get("_CRS")
    crs = crs if isinstance(crs, Mapping) else {}
    wkt = next(
        (
            text
            for value in (
                *(crs.get("wkt"), attributes.get("crs_wkt"), attributes.get("proj:wkt2")),
                *(attributes.get("spatial_ref"), attributes.get("proj:code")),
            )
            if (text := plain(value, _LONGEST_WKT))
        ),
        "",
    )
    told = attributes.get("GeoTransform")
    if isinstance(told, str):
        told = [_float(word) for word in told.split()[:7]]
    transform = _numbers(told, 6)
    if transform is None and (affine := _numbers(attributes.get("spatial:transform"), 6)):
        a, b, c, d, e, f = affine
        transform = (c, a, b, f, d, e)
    return Georeference(wkt, transform) if wkt or transform else None


def _float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _numbers(value: Any, count: int) -> tuple[float, ...] | None:
    if not isinstance(value, list | tuple) or len(value) != count:
        return None
    found = [number(item) for item in value]
    return None if None in found else tuple(n for n in found if n is not None)


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value[:_MOST_DATASETS] if isinstance(item, Mapping)]
