"""Known deviations from the v3 specification that have only one meaning.

Each deviation is corrected before the strict reading. A value with two possible meanings stays
unchanged, and the strict reading refuses it.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from typing import Any

from zarrfs.format.metadata.pipelines import ALLOWED

_ONE_BYTE_TYPES = ("bool", "int8", "uint8")
_KINDS = {
    "b": re.compile("bool"),
    "i": re.compile("u?int[0-9]+"),
    "f": re.compile("b?float.*"),
    "c": re.compile("complex.*"),
}
_ZEROS: Mapping[str, Any] = {"b": False, "i": 0, "f": 0.0, "c": [0.0, 0.0]}
_RAW_BITS = re.compile("r[0-9]+")
# Members of configurations that are integers, or lists of integers.
_WHOLE_NUMBERS = frozenset(
    ("chunk_shape", "order", "level", "clevel", "typesize", "blocksize", "keepbits")
)
_BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}
# Members that decoding does not need, with the values that zarrfs writes.
_UNUSED_BY_READERS: Mapping[str, Mapping[str, Any]] = {
    "gzip": {"level": 6},
    "zstd": {"level": 3},
    "blosc": _BLOSC,
}
_NULL_IS_MISSING = {
    name: {*members, "codecs", "index_codecs"} if name == "sharding_indexed" else {*members}
    for name, members in ALLOWED.items()
}


def corrected(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document in a form that the specification allows; the input is not changed."""
    fixed = dict(document)
    for member in ("attributes", "dimension_names", "storage_transformers"):
        if fixed.get(member, ...) is None:
            del fixed[member]
    fixed["zarr_format"] = whole(fixed.get("zarr_format"))
    if fixed.get("node_type") != "array":
        return fixed
    if fixed.get("storage_transformers") == {}:
        del fixed["storage_transformers"]
    for member in ("data_type", "chunk_grid", "chunk_key_encoding"):
        if member in fixed:
            fixed[member] = _named(fixed[member])
    if "shape" in fixed:
        fixed["shape"] = whole(fixed["shape"])
    if "chunk_grid" in fixed:
        fixed["chunk_grid"] = _without_empty_chunks(fixed["chunk_grid"], fixed.get("shape"))
    if "fill_value" in fixed:
        fixed["fill_value"] = name_non_finite(fixed["fill_value"])
    data_type = fixed.get("data_type")
    if isinstance(data_type, Mapping) and not data_type.get("configuration"):
        data_type = data_type.get("name")
    if isinstance(fixed.get("codecs"), list) and isinstance(fixed.get("shape"), list):
        rank = len(fixed["shape"])
        fixed["codecs"] = _codecs(fixed["codecs"], data_type, rank)
    if isinstance(data_type, str) and "fill_value" in fixed:
        fixed["fill_value"] = _fill_value(fixed["fill_value"], data_type)
    return fixed


def name_non_finite(value: Any) -> Any:
    """Replace bare ``NaN`` and ``Infinity`` literals, which are not JSON, by their strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [name_non_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: name_non_finite(item) for key, item in value.items()}
    return value


def _named(value: Any) -> Any:
    """An object with ``name`` and ``configuration``, without members that have no meaning.

    ``must_understand`` has no meaning for a known name. An unknown name is refused in any case.
    """
    if not isinstance(value, Mapping) or "name" not in value:
        return value
    fixed = {name: item for name, item in value.items() if name != "must_understand"}
    if fixed.get("configuration", ...) is None:
        del fixed["configuration"]
    if isinstance(fixed.get("configuration"), Mapping):
        fixed["configuration"] = _whole_members(fixed["configuration"])
    return fixed


def _without_empty_chunks(grid: Any, shape: Any) -> Any:
    """Correct 0, which zarr-python 3.0 writes along axes without elements: any length will do."""
    match grid, shape:
        case {"name": "regular", "configuration": {"chunk_shape": [*lengths]}}, [*extents]:
            pairs = zip(lengths, extents, strict=False)
            fixed = [
                1 if length == extent == 0 and type(length) is int else length
                for length, extent in pairs
            ]
            fixed += lengths[len(fixed) :]
            return {**grid, "configuration": {**grid["configuration"], "chunk_shape": fixed}}
    return grid


def _whole_members(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: whole(value) if name in _WHOLE_NUMBERS else value
        for name, value in configuration.items()
    }


def whole(value: Any) -> Any:
    """Whole floats as integers, in lists too."""
    if isinstance(value, list | tuple):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _codecs(codecs: list[Any], data_type: Any, rank: int) -> list[Any]:
    """Correct bare names, members that are missing or null, and ``transpose`` with a letter."""
    fixed: list[Any] = []
    for value in codecs:
        codec = {"name": value} if isinstance(value, str) else _named(value)
        if not isinstance(codec, dict):
            fixed.append(value)
            continue
        given = codec.get("configuration", {})
        if isinstance(given, dict) and isinstance(codec.get("name"), str):
            configuration = _configuration(codec["name"], given, data_type, rank)
            if configuration != given:
                codec = {**codec, "configuration": configuration}
        fixed.append(codec)
    return fixed


def _configuration(name: str, given: dict[str, Any], data_type: Any, rank: int) -> dict[str, Any]:
    optional = _NULL_IS_MISSING.get(name, ())
    fixed = {
        member: value
        for member, value in given.items()
        if value is not None or member not in optional
    }
    if fixed.get("id") in (name, name.removeprefix("numcodecs.")):
        del fixed["id"]  # v2's name of the codec, which repeats its name
    for member, default in _UNUSED_BY_READERS.get(name, {}).items():
        fixed.setdefault(member, default)
    if name == "bytes" and data_type not in _ONE_BYTE_TYPES:
        fixed.setdefault("endian", "little")
    elif name == "blosc":
        fixed.setdefault("typesize", _item_size(data_type))
    elif name == "transpose" and fixed.get("order") in ("C", "F"):
        order = list(range(rank))
        fixed["order"] = order if fixed["order"] == "C" else order[::-1]
    elif name == "cast_value" and "scalar_map" in fixed:
        fixed["scalar_map"] = _unsigned_infinity(fixed["scalar_map"])
    elif name == "sharding_indexed":
        fixed.setdefault("codecs", ["bytes"])
        fixed.setdefault("index_codecs", ["bytes", "crc32c"])
        for member, inner_type in (("codecs", data_type), ("index_codecs", "uint64")):
            if isinstance(fixed.get(member), list):
                fixed[member] = _codecs(fixed[member], inner_type, rank + (member != "codecs"))
    return fixed


def _item_size(data_type: Any) -> int:
    """Bytes of an element, the unit that Blosc shuffles; 1 if unknown."""
    digits = re.search("[0-9]+$", data_type) if isinstance(data_type, str) else None
    return max(1, int(digits[0]) // 8) if digits and len(digits[0]) < 4 else 1


def _unsigned_infinity(value: Any) -> Any:
    """Correct ``"+Infinity"``, which the specification of ``cast_value`` itself uses."""
    if isinstance(value, list):
        return [_unsigned_infinity(item) for item in value]
    if isinstance(value, dict):
        return {key: _unsigned_infinity(item) for key, item in value.items()}
    return "Infinity" if value == "+Infinity" else value


def _fill_value(value: Any, data_type: str) -> Any:
    """Correct numbers in other spellings, and base64 for raw bits.

    GDAL 3.12 writes null for an array without a nodata value. It is zero, as in v2.
    """
    kind = next((kind for kind, names in _KINDS.items() if names.fullmatch(data_type)), None)
    if kind is not None:
        return _ZEROS[kind] if value is None else plain_fill(value, kind)
    if _RAW_BITS.fullmatch(data_type) and isinstance(value, str):
        try:
            return list(base64.b64decode(value, validate=True))
        except ValueError:  # also for characters beyond ASCII
            return value
    return value


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INFINITY = re.compile(r"([+-]?)inf(inity)?", re.ASCII | re.IGNORECASE)
# Python does not parse longer ones, and no type has so many digits.
_LONGEST = 400


def plain_fill(value: Any, kind: str) -> Any:
    """The fill value in the form of the specification; a value without one stays unchanged.

    Bioformats and n5 write ``"0"``, viv writes ``"nan"``, and programs pass a fill value on as
    text. A string for a bool is refused later: readers disagree whether ``"0"`` is true.

    kind : as in numpy: of a bool (``b``), an integer (``i``, ``u``), a float (``f``) or a complex
        number (``c``), of any size.
    """
    if kind == "b":
        is_flag = isinstance(value, int | float) and value in (0, 1)
        return bool(value) if is_flag else value
    if kind == "c":
        if isinstance(value, list | tuple):
            return [plain_fill(part, "f") for part in value]
        return [plain_fill(value, "f"), 0.0] if isinstance(value, int | float | str) else value
    if isinstance(value, bool):
        return int(value)
    if kind in "iu":
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return _integer(value) if isinstance(value, str) else value
    return _float(value) if isinstance(value, str) else value


def _integer(text: str) -> Any:
    digits = text.strip()
    return int(digits) if len(digits) < _LONGEST and _INTEGER.fullmatch(digits) else text


def _float(text: str) -> Any:
    spelled = text.strip()
    if spelled.lower() == "nan":
        return "NaN"
    if match := _INFINITY.fullmatch(spelled):
        return "-Infinity" if match[1] == "-" else "Infinity"
    if len(spelled) < _LONGEST and _NUMBER.fullmatch(spelled):
        return float(spelled)
    return text
