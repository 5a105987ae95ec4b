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
_METHODS: dict[str, tuple[str, dict[str, str]]] = {
    "transverse_mercator": (
        "Transverse_Mercator",
        {
            "latitude_of_origin": _ORIGIN,
            "central_meridian": _MERIDIAN,
            "scale_factor": "scale_factor_at_central_meridian",
        },
    ),
    "albers_conical_equal_area": (
        "Albers_Conic_Equal_Area",
        {
            "standard_parallel_1": "standard_parallel",
            "standard_parallel_2": "standard_parallel",
            "latitude_of_center": _ORIGIN,
            "longitude_of_center": _MERIDIAN,
        },
    ),
    "lambert_azimuthal_equal_area": (
        "Lambert_Azimuthal_Equal_Area",
        {"latitude_of_center": _ORIGIN, "longitude_of_center": _CENTRE},
    ),
    "azimuthal_equidistant": (
        "Azimuthal_Equidistant",
        {"latitude_of_center": _ORIGIN, "longitude_of_center": _CENTRE},
    ),
    "orthographic": (
        "Orthographic",
        {"latitude_of_origin": _ORIGIN, "central_meridian": _CENTRE},
    ),
    "stereographic": (
        "Stereographic",
        {
            "latitude_of_origin": _ORIGIN,
            "central_meridian": _CENTRE,
            "scale_factor": "scale_factor_at_projection_origin",
        },
    ),
    "sinusoidal": ("Sinusoidal", {"longitude_of_center": _CENTRE}),
    "lambert_cylindrical_equal_area": (
        "Cylindrical_Equal_Area",
        {"standard_parallel_1": "standard_parallel", "central_meridian": _MERIDIAN},
    ),
}
_LAMBERT = {
    "latitude_of_origin": _ORIGIN,
    "central_meridian": _MERIDIAN,
    "standard_parallel_1": "standard_parallel",
}
_POLAR = {
    "latitude_of_origin": "standard_parallel",
    "central_meridian": "straight_vertical_longitude_from_pole",
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


def _method(kind: str, said: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
    parallels = len(_numbers(said.get("standard_parallel")))
    if kind == "lambert_conformal_conic":
        if parallels > 1:
            return "Lambert_Conformal_Conic_2SP", {
                **_LAMBERT,
                "standard_parallel_2": "standard_parallel",
            }
        tangent = {**_LAMBERT, "scale_factor": ""}
        tangent["latitude_of_origin"] = tangent.pop("standard_parallel_1")
        return "Lambert_Conformal_Conic_1SP", tangent
    if kind == "polar_stereographic":
        if parallels:
            return "Polar_Stereographic", _POLAR
        scaled = {**_POLAR, "scale_factor": "scale_factor_at_projection_origin"}
        return "Polar_Stereographic", {**scaled, "latitude_of_origin": _ORIGIN}
    if kind == "mercator":
        if parallels:
            return "Mercator_2SP", {
                "standard_parallel_1": "standard_parallel",
                "central_meridian": _CENTRE,
            }
        return "Mercator_1SP", {
            "central_meridian": _CENTRE,
            "scale_factor": "scale_factor_at_projection_origin",
        }
    return _METHODS.get(kind)


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
