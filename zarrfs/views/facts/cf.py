"""CF's grid mappings as well-known text.

https://cfconventions.org/cf-conventions/cf-conventions.html#appendix-grid-mappings. The text is
WKT 1 as GDAL has it, which all programs for rasters read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.views.facts.text import number, plain

_ORIGIN = "latitude_of_projection_origin"
_MERIDIAN = "longitude_of_central_meridian"
_CENTRE = "longitude_of_projection_origin"
_POLE = "straight_vertical_longitude_from_pole"
_PARALLEL = {"standard_parallel_1": "standard_parallel"}
_PARALLELS = {**_PARALLEL, "standard_parallel_2": "standard_parallel"}
_SCALE = {"scale_factor": "scale_factor_at_projection_origin"}
_AT_CENTRE = {"latitude_of_origin": _ORIGIN, "central_meridian": _CENTRE}
_AT_MERIDIAN = {"latitude_of_origin": _ORIGIN, "central_meridian": _MERIDIAN}
_AT_POLE = {"latitude_of_origin": _ORIGIN, "central_meridian": _POLE}
_CENTERED = {"latitude_of_center": _ORIGIN, "longitude_of_center": _CENTRE}

_Method = tuple[str, dict[str, str]]
"""Its name in WKT, and the attribute that says each of its parameters."""

_METHODS: dict[str, _Method] = {
    "transverse_mercator": (
        "Transverse_Mercator",
        _AT_MERIDIAN | {"scale_factor": "scale_factor_at_central_meridian"},
    ),
    "albers_conical_equal_area": (
        "Albers_Conic_Equal_Area",
        _PARALLELS | _CENTERED | {"longitude_of_center": _MERIDIAN},
    ),
    "lambert_azimuthal_equal_area": ("Lambert_Azimuthal_Equal_Area", _CENTERED),
    "azimuthal_equidistant": ("Azimuthal_Equidistant", _CENTERED),
    "orthographic": ("Orthographic", _AT_CENTRE),
    "stereographic": ("Stereographic", _AT_CENTRE | _SCALE),
    "sinusoidal": ("Sinusoidal", {"longitude_of_center": _CENTRE}),
    "lambert_cylindrical_equal_area": (
        "Cylindrical_Equal_Area",
        _PARALLEL | {"central_meridian": _MERIDIAN},
    ),
    "lambert_conformal_conic": (
        "Lambert_Conformal_Conic_1SP",
        _AT_MERIDIAN | {"latitude_of_origin": "standard_parallel", "scale_factor": ""},
    ),
    "polar_stereographic": ("Polar_Stereographic", _AT_POLE | _SCALE),
    "mercator": ("Mercator_1SP", {"central_meridian": _CENTRE} | _SCALE),
}
_OF_PARALLELS: dict[str, _Method] = {
    "polar_stereographic": (
        "Polar_Stereographic",
        _AT_POLE | {"latitude_of_origin": "standard_parallel"},
    ),
    "mercator": ("Mercator_2SP", _PARALLEL | {"central_meridian": _CENTRE}),
}
"""Those with a standard parallel."""

_OF_TWO_PARALLELS: dict[str, _Method] = {
    "lambert_conformal_conic": ("Lambert_Conformal_Conic_2SP", _AT_MERIDIAN | _PARALLELS),
}
_WGS_84 = (6378137.0, 298.257223563)


def cf_crs(said: Mapping[str, Any]) -> str:
    """The reference system that the attributes of a grid mapping describe; empty if none."""
    kind = plain(said.get("grid_mapping_name"))
    if kind == "latitude_longitude":
        return _geographic(said)
    found = _method(kind, said)
    if found is None:
        return ""
    method, parameters = found
    values: dict[str, float] = {}
    for name, source in parameters.items():
        numbers = _numbers(said.get(source))
        place = 1 if name == "standard_parallel_2" else 0
        if name == "scale_factor":
            numbers = numbers or [1.0]
        if not numbers:
            return ""
        values[name] = numbers[min(place, len(numbers) - 1)]
    for name in ("false_easting", "false_northing"):
        values[name] = number(said.get(name)) or 0.0
    texts = ",".join(f'PARAMETER["{name}",{value!r}]' for name, value in values.items())
    title = _name(said, "projected_crs_name")
    return (
        f'PROJCS["{title}",{_geographic(said)},PROJECTION["{method}"],{texts},'
        'UNIT["metre",1,AUTHORITY["EPSG","9001"]]]'
    )


def _method(kind: str, said: Mapping[str, Any]) -> _Method | None:
    parallels = len(_numbers(said.get("standard_parallel")))
    tables = (_METHODS, _OF_PARALLELS, _OF_TWO_PARALLELS)[: parallels + 1]
    return next((table[kind] for table in reversed(tables) if kind in table), None)


def _geographic(said: Mapping[str, Any]) -> str:
    axis, flattening = _WGS_84
    if (radius := number(said.get("earth_radius"))) is not None and radius > 0:
        axis, flattening = radius, 0.0
    if (major := number(said.get("semi_major_axis"))) is not None and major > 0:
        axis = major
        minor = number(said.get("semi_minor_axis"))
        inverse = number(said.get("inverse_flattening"))
        if inverse is not None:
            flattening = inverse
        elif minor is not None and 0 < minor <= major:
            flattening = 0.0 if minor == major else major / (major - minor)
    meridian = number(said.get("longitude_of_prime_meridian")) or 0.0
    return (
        f'GEOGCS["{_name(said, "geographic_crs_name")}",'
        f'DATUM["{_name(said, "horizontal_datum_name")}",'
        f'SPHEROID["{_name(said, "reference_ellipsoid_name")}",{axis!r},{flattening!r}]],'
        f'PRIMEM["{_name(said, "prime_meridian_name", "Greenwich")}",{meridian!r}],'
        'UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]]]'
    )


def _name(said: Mapping[str, Any], key: str, instead: str = "unknown") -> str:
    return plain(said.get(key)).replace('"', " ") or instead


def _numbers(value: Any) -> list[float]:
    values = value if isinstance(value, list | tuple) else [value]
    found = [number(item) for item in values[:2]]
    return [item for item in found if item is not None]
