"""Units of length and time: one table for all formats."""

from __future__ import annotations

import math

_PREFIXES = {
    "pico": ("p", 1e-12), "nano": ("n", 1e-9), "micro": ("u", 1e-6), "milli": ("m", 1e-3),
    "centi": ("c", 1e-2), "deci": ("d", 1e-1), "kilo": ("k", 1e3), "femto": ("f", 1e-15),
}  # fmt: skip
_LENGTHS = {
    "m": 1.0, "meter": 1.0, "metre": 1.0, "meters": 1.0, "metres": 1.0,
    "angstrom": 1e-10, "angstroms": 1e-10, "Å": 1e-10, "A": 1e-10, "\u212b": 1e-10,
    "micron": 1e-6, "microns": 1e-6, "µm": 1e-6, "μm": 1e-6,
    "inch": 0.0254, "inches": 0.0254, "in": 0.0254, "foot": 0.3048, "feet": 0.3048, "ft": 0.3048,
    "yard": 0.9144, "mile": 1609.344,
}  # fmt: skip
_TIMES = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "µs": 1e-6, "μs": 1e-6,
    "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
for _name, (_letter, _factor) in _PREFIXES.items():
    _LENGTHS[f"{_letter}m"] = _factor
    _TIMES[f"{_letter}s"] = _factor
    for _base in ("meter", "metre", "meters", "metres"):
        _LENGTHS[_name + _base] = _factor
    for _base in ("second", "seconds", "sec"):
        _TIMES[_name + _base] = _factor


def metres(unit: str) -> float | None:
    """Metres in one unit of length; None if it is none, or unknown."""
    return _LENGTHS.get(unit)


def seconds(unit: str) -> float | None:
    """Seconds in one unit of time, or in ``hours since 2000-01-01``; None if unknown."""
    return _TIMES.get(unit.partition(" since ")[0])


def ratio(unit: float, base: float) -> float:
    """How many of ``base`` are in ``unit``: a quotient without an error of rounding."""
    if unit < base:
        return 1 / ratio(base, unit)
    found = unit / base
    return round(found) if math.isclose(found, round(found)) else found
