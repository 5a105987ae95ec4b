"""The place of an array on the earth, and the axes that it belongs to.

- GDAL's ``_CRS``: https://gdal.org/en/stable/drivers/raster/zarr.html#srs-encoding
- CF's and rioxarray's ``crs_wkt``, ``spatial_ref`` and ``GeoTransform``; CF's `grid mappings <cf>`
- the conventions ``proj:`` and ``spatial:``: https://github.com/zarr-conventions
- STAC's ``proj:epsg`` and ``proj:transform``, as in EOPF
- rasterio's ``crs`` and ``transform``, which xarray, rioxarray and stackstac give to arrays

Attributes of the array come first, then those of the array that its ``grid_mapping`` names, then
those of the groups above, the nearest first. Where the axes y and x have coordinates at equal
distances, these come before a ``GeoTransform`` and rasterio's ``transform``, which programs do not
change when they cut a part from an array, and stand in for any other transform.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.views.facts.cf import cf_crs
from zarrfs.views.facts.facts import Around, Axis, Georeference
from zarrfs.views.facts.text import dicts, number, numbers, plain

_LONGEST_CRS = 8192
_URL = re.compile(r"https?://www\.opengis\.net/def/crs/EPSG/[\w.]+/(\d{4,5})", re.ASCII)
_CODE = re.compile(r"[A-Za-z_]{2,16}:[A-Za-z0-9_]{1,16}", re.ASCII)
_MOST_LEVELS = 64
_RIOXARRAYS = "spatial_ref"
_INIT = "+init="
_RADIANS = frozenset(("rad", "radian", "radians"))

Transform = tuple[float, ...]
Found = tuple[Georeference, int | None, int | None]
"""The georeference, and the axes y and x; nothing and None if they are not known."""


def georeference(attributes: Mapping[str, Any], axes: Sequence[Axis], around: Around) -> Found:
    """The georeference of an array with these axes."""
    # Whether attributes are those of one array; and the array's path in the group of others.
    sources = [(attributes, ""), (around.grid_mapping, "")]
    sources += [(_said_to(path, group), path) for path, group in around.groups]
    crs, transform, nodes, moves = "", None, False, True
    place: Mapping[str, Any] = {}
    own = False
    for source, path in sources:
        if not crs:
            crs = _crs(source)
            place, own = (source, own or not path) if crs and transform is None else (place, own)
        if transform is None and (found := _transform(source, path)) is not None:
            transform, place, own = found, source, not path
            moves = "GeoTransform" in source or _rasterios_transform(source) is not None
            if source.get("spatial:registration") == "node":
                nodes, transform = True, _of_corners(transform)
            nodes = nodes or source.get("AREA_OR_POINT") == "Point"
    y, x = _axes(place, axes, own=own)
    if y is None or x is None or not _fits(place, axes[y].length, axes[x].length, own=own):
        return Georeference(), None, None
    if moves and not nodes:
        height = _height((attributes, around.grid_mapping), axes[y], axes[x])
        transform = _by_coordinates(transform, axes[y], axes[x], height)
    if not crs and transform is None:
        return Georeference(), None, None
    return Georeference(crs, transform, nodes), y, x


def _said_to(path: str, group: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of a group for the array at a path: conventions speak to its own arrays."""
    if "/" not in path or "multiscales" in group:
        return group
    return {k: v for k, v in group.items() if not k.startswith(("proj:", "spatial:"))}


def _height(sources: Sequence[Mapping[str, Any]], y: Axis, x: Axis) -> float:
    """Metres in one unit of the coordinates of a satellite view, which are angles in CF; else 1.

    https://cfconventions.org/cf-conventions/cf-conventions.html#_geostationary_projection
    """
    if y.unit not in _RADIANS or x.unit not in _RADIANS:
        return 1.0
    said = (number(source.get("perspective_point_height")) for source in sources)
    return next((height for height in said if height), 1.0)


def _by_coordinates(
    said: Transform | None, y: Axis, x: Axis, height: float = 1.0
) -> Transform | None:
    """The transform by the coordinates, which are those of the middles of elements.

    height : by which they are multiplied.
    """
    if said is not None and (said[2] or said[4]):
        return said
    if not (y.coordinates and x.coordinates and y.spacing and x.spacing):
        return said
    left, width, top, down = (n * height for n in (x.origin, x.spacing, y.origin, y.spacing))
    found = (left - width / 2, width, 0.0, top - down / 2, 0.0, down)
    # Those of stackstac are of corners.
    for each in (found, (left, width, 0.0, top, 0.0, down)):
        if said is not None and all(
            abs(said[i] - each[i]) + n * abs(said[j] - each[j]) < abs(each[j]) / 100
            for i, j, n in ((0, 1, x.length), (3, 5, y.length))
        ):
            return said  # the same, without errors of rounding
    return found


def grid_mapping(attributes: Mapping[str, Any]) -> str:
    """The name of the neighbouring array with this array's georeference; empty if there is none.

    rioxarray takes a coordinate of a certain name for one that no attribute names.
    https://cfconventions.org/cf-conventions/cf-conventions.html#grid-mappings-and-projections
    """
    value = attributes.get("grid_mapping")
    if isinstance(value, str):
        return value.split(":", 1)[0].strip()
    # xarray's arithmetic keeps this scalar coordinate, and loses the attribute.
    beside = attributes.get("coordinates")
    return _RIOXARRAYS if isinstance(beside, str) and _RIOXARRAYS in beside.split() else ""


def _axes(
    place: Mapping[str, Any], axes: Sequence[Axis], *, own: bool
) -> tuple[int | None, int | None]:
    """The axes y and x, by their names.

    own : whether the attributes are those of the array, which may have no names.
    """
    names = [axis.name for axis in axes]
    said = place.get("spatial:dimensions")
    if isinstance(said, list | tuple) and len(said) >= 2:
        y, x = said[-2:]
        both = names.count(y) == 1 and names.count(x) == 1
        return (names.index(y), names.index(x)) if both else (None, None)
    if own and not any(names) and len(axes) >= 2:
        return len(axes) - 2, len(axes) - 1
    roles = [axis.role for axis in axes]
    if roles.count("y") == 1 and roles.count("x") == 1:
        return roles.index("y"), roles.index("x")
    return None, None


def _fits(place: Mapping[str, Any], height: int, width: int, *, own: bool) -> bool:
    """Whether a group that says the shape of its rasters means this one."""
    shape = place.get("spatial:shape")
    if own or not isinstance(shape, list | tuple) or len(shape) < 2:
        return True
    return list(shape[-2:]) == [height, width] or "multiscales" in place


def _crs(source: Mapping[str, Any]) -> str:
    crs = source.get("_CRS")
    crs = crs if isinstance(crs, Mapping) else {}
    for value in (crs.get("wkt"), source.get("crs_wkt"), source.get("proj:wkt2")):
        if text := _whole(value):
            return text
    if text := _whole(source.get("spatial_ref")):
        return text
    for value in (crs.get("projjson"), source.get("proj:projjson")):
        if isinstance(value, Mapping) and value.get("type"):
            text = json.dumps(value)
            if len(text) <= _LONGEST_CRS:
                return text
    code = _whole(source.get("proj:code"))
    if _CODE.fullmatch(code) or "[" in code:
        return code
    if (match := _URL.fullmatch(plain(crs.get("url")))) is not None:
        return f"EPSG:{match[1]}"
    epsg = number(source.get("proj:epsg"))
    if epsg is not None and 1024 <= epsg < 32767:
        return f"EPSG:{int(epsg)}"
    return cf_crs(source) or _rasterios(source)


def _rasterios(source: Mapping[str, Any]) -> str:
    """The reference system as text of rasterio, such as ``+init=epsg:4326``."""
    text = _whole(source.get("crs")).removeprefix(_INIT)
    return text.upper() if _CODE.fullmatch(text) else text if "[" in text else ""


def _rasterios_transform(source: Mapping[str, Any]) -> Any:
    """The attribute ``transform``; None where no ``crs`` of rasterio says that it is rasterio's."""
    return source.get("transform") if _rasterios(source) else None


def _whole(value: Any) -> str:
    """The text on one line; empty if it is too long, because part of it means nothing."""
    return (
        plain(value, _LONGEST_CRS) if isinstance(value, str) and len(value) <= _LONGEST_CRS else ""
    )


def _transform(source: Mapping[str, Any], path: str) -> Transform | None:
    """GDAL's six numbers for the array at ``path`` in a group; empty: for the array itself."""
    if source.get("spatial:transform_type", "affine") != "affine":
        return None
    scales = source.get("multiscales")
    if path and isinstance(scales, Mapping):
        return _of_level(source, dicts(scales.get("layout")), path, _MOST_LEVELS)
    return _said(source)


def geo_transform(source: Mapping[str, Any]) -> Transform | None:
    """GDAL's attribute ``GeoTransform``; None if there is none."""
    given = source.get("GeoTransform")
    if isinstance(given, str):
        given = [_float(word) for word in given.split()[:7]]
    return numbers(given, 6)


def _said(source: Mapping[str, Any]) -> Transform | None:
    transform = geo_transform(source)
    of_conventions = source.get("spatial:transform"), source.get("proj:transform")
    for affine in (*of_conventions, _rasterios_transform(source)):
        rows = affine[:6] if isinstance(affine, list | tuple) and len(affine) == 9 else affine
        if transform is None and (found := numbers(rows, 6)) is not None:
            a, b, c, d, e, f = found
            transform = (c, a, b, f, d, e)
    usable = transform is not None and transform[1] * transform[5] != transform[2] * transform[4]
    return transform if usable else None


def _of_level(
    source: Mapping[str, Any], layout: Sequence[Mapping[str, Any]], path: str, most: int
) -> Transform | None:
    """The numbers of one level of a pyramid: https://github.com/zarr-conventions/multiscales."""
    for level in layout:
        asset = level.get("asset")
        if not isinstance(asset, str) or not f"{path}/".startswith(f"{asset.strip('/')}/"):
            continue
        if (found := _said(level)) is not None:
            return found
        derived = level.get("derived_from")
        if not isinstance(derived, str):
            return _said(source)
        step = level.get("transform")
        step = step if isinstance(step, Mapping) else {}
        scale = step.get("scale")
        moved = step.get("translation", [0])
        if not isinstance(scale, list) or len(scale) < 2 or any(moved) or most <= 0:
            return None
        factors = numbers(scale[-2:], 2)
        above = _of_level(source, layout, derived.strip("/"), most - 1)
        if above is None or factors is None or min(factors) <= 0:
            return None
        x, width, row_x, y, column_y, height = above
        down, across = factors
        return (x, width * across, row_x * down, y, column_y * across, height * down)
    return None


def _of_corners(transform: Transform) -> Transform:
    """A transform that refers to the centres of elements, for their corners."""
    x, width, row_x, y, column_y, height = transform
    return (
        *(x - (width + row_x) / 2, width, row_x),
        *(y - (column_y + height) / 2, column_y, height),
    )


def _float(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
