"""Reads ``zarr.json`` in its usual form, without the model of the whole specification.

Importing that model takes as long as importing numpy. The model reads every document that is
accepted here in the same way. All other documents, and so all errors, are left to it (`strict`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from zarrfs.format.metadata.members import ArrayMembers, plain

_REQUIRED = {
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
}
_OPTIONAL = {"attributes", "dimension_names", "storage_transformers"}
_GROUP = {"zarr_format", "node_type", "attributes"}

_INTEGERS = {
    f"{sign}int{bits}": range(0 if sign else -(1 << (bits - 1)), 1 << (bits if sign else bits - 1))
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_FLOATS = ("float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_NON_FINITE = ("NaN", "Infinity", "-Infinity")
# Data types whose elements have no byte order.
_ONE_BYTE = ("bool", "int8", "uint8")

_KEY_ENCODINGS = ("default", "v2")
_BYTES: tuple[Any, ...] = ({"endian": "little"}, {"endian": "big"})
_CNAMES = ("lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd")
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_INDEX_CODECS = ("bytes", "crc32c")
# The most levels of shards within shards.
_DEPTH = 4


def is_group(value: Mapping[str, Any]) -> bool:
    """Whether a document is that of a group without further members."""
    return _is_node(value, "group") and value.keys() <= _GROUP


def array_members(value: Mapping[str, Any]) -> ArrayMembers | None:
    """The members of an array's document; None if the document needs the model.

    value : with ``attributes`` of any kind; they are not checked.
    """
    if not _is_node(value, "array") or not _has(value, _REQUIRED, _OPTIONAL):
        return None
    shape, data_type, grid = value["shape"], value["data_type"], value["chunk_grid"]
    if not (
        _lengths(shape, least=0)
        and _fill_value(data_type, value["fill_value"])
        and _chunk_grid(grid, len(shape))
        and _key_encoding(value["chunk_key_encoding"])
        and ("dimension_names" not in value or _names(value["dimension_names"], len(shape)))
        and value.get("storage_transformers", []) == []
    ):
        return None
    configuration = grid["configuration"]
    if not _pipeline(value["codecs"], data_type, configuration["chunk_shape"], _DEPTH):
        return None
    return ArrayMembers(
        shape=tuple(shape),
        data_type=data_type,
        fill_value=value["fill_value"],
        codecs=plain(value["codecs"]),
        chunk_grid=plain(grid),
        chunk_key_encoding=plain(value["chunk_key_encoding"]),
        grid_name=grid["name"],
        grid_configuration=plain(configuration),
        dimension_names=tuple(value.get("dimension_names", ())),
    )


def _is_node(value: Mapping[str, Any], node_type: str) -> bool:
    return _integer(value.get("zarr_format"), 3, 3) and value.get("node_type") == node_type


def _has(value: Any, required: set[str], optional: frozenset[str] | set[str] = frozenset()) -> bool:
    return isinstance(value, Mapping) and required <= value.keys() <= required | optional


def _integer(value: Any, least: float, most: float = math.inf) -> bool:
    # In Python, True and False count as numbers too.
    return type(value) is int and least <= value <= most


def _lengths(value: Any, *, least: int) -> bool:
    return isinstance(value, list) and all(_integer(length, least) for length in value)


def _fill_value(data_type: Any, fill: Any) -> bool:
    if not isinstance(data_type, str):
        return False
    if data_type == "bool":
        return isinstance(fill, bool)
    if (values := _INTEGERS.get(data_type)) is not None:
        return type(fill) is int and fill in values
    if data_type in _COMPLEX:
        return isinstance(fill, list) and len(fill) == 2 and all(map(_float, fill))
    return data_type in _FLOATS and _float(fill)


def _float(fill: Any) -> bool:
    if isinstance(fill, float):
        return math.isfinite(fill)
    return fill in _NON_FINITE if isinstance(fill, str) else _integer(fill, -(2**53), 2**53)


def _chunk_grid(value: Any, axes: int) -> bool:
    if not _has(value, {"name", "configuration"}) or value["name"] != "regular":
        return False
    configuration = value["configuration"]
    return (
        _has(configuration, {"chunk_shape"})
        and _lengths(configuration["chunk_shape"], least=1)
        and len(configuration["chunk_shape"]) == axes
    )


def _key_encoding(value: Any) -> bool:
    if not _has(value, {"name"}, {"configuration"}) or value["name"] not in _KEY_ENCODINGS:
        return False
    return value.get("configuration", {}) in ({}, {"separator": "/"}, {"separator": "."})


def _names(value: Any, axes: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == axes
        and all(name is None or isinstance(name, str) for name in value)
    )


def _pipeline(codecs: Any, data_type: str, chunk: list[int], depth: int) -> bool:
    """Whether the order of the codecs is valid, and they fit chunks of that type and shape."""
    if not isinstance(codecs, list):
        return False
    encoded = False
    for codec in codecs:
        if not _has(codec, {"name"}, {"configuration"}):
            return False
        name, configuration = codec["name"], codec.get("configuration", {})
        if not isinstance(name, str) or not isinstance(configuration, Mapping):
            return False
        if encoded:
            if not _bytes_to_bytes(name, configuration):
                return False
        elif name == "transpose":
            if not _transpose(configuration, len(chunk)):
                return False
            chunk = [chunk[axis] for axis in configuration["order"]]
        elif name == "bytes":
            encoded = configuration in _BYTES or (not configuration and data_type in _ONE_BYTE)
            if not encoded:
                return False
        elif name == "sharding_indexed" and _sharding(configuration, data_type, chunk, depth):
            encoded = True
        else:
            return False
    return encoded


def _bytes_to_bytes(name: str, value: Mapping[str, Any]) -> bool:
    if name == "crc32c":
        return not value
    if name == "gzip":
        return _has(value, {"level"}) and _integer(value["level"], 0, 9)
    if name == "zstd":
        return (
            _has(value, {"level"}, {"checksum"})
            and _integer(value["level"], -131072, 22)
            and isinstance(value.get("checksum", False), bool)
        )
    return (
        name == "blosc"
        and _has(value, {"cname", "clevel", "shuffle", "typesize", "blocksize"})
        and value["cname"] in _CNAMES
        and _integer(value["clevel"], 0, 9)
        and value["shuffle"] in _SHUFFLES
        and _integer(value["typesize"], 1)
        and _integer(value["blocksize"], 0)
    )


def _transpose(value: Mapping[str, Any], axes: int) -> bool:
    return (
        _has(value, {"order"})
        and _lengths(value["order"], least=0)
        and sorted(value["order"]) == list(range(axes))
    )


def _sharding(value: Mapping[str, Any], data_type: str, shard: list[int], depth: int) -> bool:
    if not depth or not _has(value, {"chunk_shape", "codecs", "index_codecs"}, {"index_location"}):
        return False
    inner, index = value["chunk_shape"], value["index_codecs"]
    return (
        _lengths(inner, least=1)
        and len(inner) == len(shard)
        and all(length % part == 0 for length, part in zip(shard, inner, strict=True))
        and value.get("index_location", "end") in ("start", "end")
        and _pipeline(value["codecs"], data_type, inner, depth - 1)
        and _pipeline(index, "uint64", [1] * (len(inner) + 1), 0)
        and all(codec["name"] in _INDEX_CODECS for codec in index)
    )
