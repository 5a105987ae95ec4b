"""Deviations from the v3 specification that are in the wild and mean only one thing.

Each is put right before the strict reading. What could be read two ways is left
alone, to be refused there.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from typing import Any

_ONE_BYTE_TYPES = ("bool", "int8", "uint8")
_INTEGER = re.compile("u?int[0-9]+")
_RAW_BITS = re.compile("r[0-9]+")


def put_right(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document in a form that the specification allows; the input stays as it is."""
    fixed = dict(document)
    for member in ("attributes", "dimension_names"):
        if fixed.get(member, ...) is None:
            del fixed[member]
    if fixed.get("node_type") != "array":
        return fixed
    fixed["fill_value"] = name_non_finite(fixed.get("fill_value"))
    data_type = fixed.get("data_type")
    if isinstance(fixed.get("codecs"), list) and isinstance(fixed.get("shape"), list):
        rank = len(fixed["shape"])
        fixed["codecs"] = _codecs(fixed["codecs"], data_type, rank)
    if isinstance(data_type, str) and "fill_value" in fixed:
        fixed["fill_value"] = _fill_value(fixed["fill_value"], data_type)
    return fixed


def name_non_finite(value: Any) -> Any:
    """Bare ``NaN`` and ``Infinity`` literals, which are no JSON, as the strings they stand for."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [name_non_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: name_non_finite(item) for key, item in value.items()}
    return value


def _codecs(codecs: list[Any], data_type: Any, rank: int) -> list[Any]:
    """Names alone, a missing ``endian``, and ``transpose`` with ``"C"`` or ``"F"``."""
    fixed: list[Any] = []
    for value in codecs:
        codec = {"name": value} if isinstance(value, str) else value
        if not isinstance(codec, dict):
            fixed.append(value)
            continue
        configuration = codec.get("configuration")
        configuration = dict(configuration) if isinstance(configuration, dict) else {}
        name = codec.get("name")
        if name == "bytes" and data_type not in _ONE_BYTE_TYPES:
            configuration.setdefault("endian", "little")
        elif name == "transpose" and configuration.get("order") in ("C", "F"):
            order = list(range(rank))
            configuration["order"] = order if configuration["order"] == "C" else order[::-1]
        elif name == "cast_value" and "scalar_map" in configuration:
            configuration["scalar_map"] = _unsigned_infinity(configuration["scalar_map"])
        elif name == "sharding_indexed":
            for member, inner_type in (("codecs", data_type), ("index_codecs", "uint64")):
                if isinstance(configuration.get(member), list):
                    inner_rank = rank + (member == "index_codecs")
                    configuration[member] = _codecs(configuration[member], inner_type, inner_rank)
        fixed.append({**codec, "configuration": configuration} if configuration else codec)
    return fixed


def _unsigned_infinity(value: Any) -> Any:
    """``"+Infinity"``, which the specification of ``cast_value`` itself writes."""
    if isinstance(value, list):
        return [_unsigned_infinity(item) for item in value]
    if isinstance(value, dict):
        return {key: _unsigned_infinity(item) for key, item in value.items()}
    return "Infinity" if value == "+Infinity" else value


def _fill_value(value: Any, data_type: str) -> Any:
    """Whole floats for integers, base64 for raw bits, one real number for complex."""
    if _INTEGER.fullmatch(data_type) and isinstance(value, float) and value.is_integer():
        return int(value)
    if data_type in ("complex64", "complex128") and isinstance(value, int | float):
        return [value, 0.0]
    if _RAW_BITS.fullmatch(data_type) and isinstance(value, str):
        try:
            return list(base64.b64decode(value, validate=True))
        except binascii.Error:
            return value
    return value
