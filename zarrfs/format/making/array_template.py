"""Metadata documents as templates for a new array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from zarrfs.errors import MetadataError
from zarrfs.format.codec_chain import SHARDING, inner_chunk_shape
from zarrfs.format.making.chunk_choice import ChunkConstraints
from zarrfs.format.making.new_array import DIMENSION_UNITS, FREE, NewArray
from zarrfs.format.metadata.documents import V2_DIMENSIONS
from zarrfs.format.metadata.lenient import name_non_finite
from zarrfs.format.metadata.older.v2_codecs import STRINGS
from zarrfs.format.metadata.older.v2_dtype import fill_bytes, numpy_dtype
from zarrfs.format.metadata.v3 import ARRAY_MEMBERS
from zarrfs.format.numpy_types import data_type_json, data_type_of


def template(value: Any, name: str, attributes: Mapping[str, Any] | None = None) -> NewArray:
    """Read a template from a parsed ``zarr.json`` or ``.zarray``, complete or not.

    name : of the document, for errors.
    attributes : those that belong to a ``.zarray``, which does not contain them.

    Raises MetadataError.
    """
    if not isinstance(value, Mapping):
        raise MetadataError(name, "is not a JSON object")
    if value.get("node_type", "array") != "array":
        raise MetadataError(name, "is not of an array")
    try:
        if value.get("zarr_format") == 2 or "dtype" in value:
            return _of_v2(value, attributes or {})
        return _of_v3(value)
    except (ValueError, TypeError, AttributeError) as error:
        raise MetadataError(name, f"cannot be used: {error}") from error


def with_defaults(array: NewArray, base: NewArray) -> NewArray:
    """``array`` with its omitted parts taken from ``base``.

    Raises ValueError if that would take codecs of another version of Zarr.
    """
    unset = NewArray()
    given = {
        field.name: getattr(array, field.name)
        for field in fields(array)
        if getattr(array, field.name) != getattr(unset, field.name)
    }
    zarr_format = given.get("zarr_format", base.zarr_format) or 3
    if zarr_format != (base.zarr_format or 3):
        if base.codecs and "codecs" not in given:
            raise ValueError(
                f"codecs of Zarr {base.zarr_format} are not taken to Zarr {zarr_format}: "
                "they must be given"
            )
        base = replace(base, codecs=None, key_encoding=None, others={})
    for name in ("chunks", "shards"):
        if name in given:
            given[name] = _constraints(given[name], getattr(base, name) or FREE)
            base = replace(base, chunk_grid=None)
    if "attributes" in given:
        given["attributes"] = {**base.attributes, **given["attributes"]}
    return replace(base, **given)


def _constraints(given: ChunkConstraints, base: ChunkConstraints) -> ChunkConstraints:
    """Use lengths of ``base`` for axes without one, unless ``given`` sets a number of elements."""
    if given.lengths and len(given.lengths) == len(base.lengths):
        lengths = [a or b for a, b in zip(given.lengths, base.lengths, strict=True)]
        return replace(given, lengths=tuple(lengths))
    return given


def _of_v3(value: Mapping[str, Any]) -> NewArray:
    attributes = dict(value.get("attributes") or {})
    shape = value.get("shape")
    grid = value.get("chunk_grid")
    codecs = value.get("codecs")
    chunks: ChunkConstraints = FREE
    shards = None
    if isinstance(grid, Mapping) and grid.get("name") == "regular":
        stored = tuple(grid["configuration"]["chunk_shape"])
        grid = None
        chunks = ChunkConstraints(stored)
        inner = inner_chunk_shape(codecs or (), len(stored))
        if codecs is not None and inner is not None:
            chunks, shards = ChunkConstraints(inner), chunks
            codecs = [_without_shape(codec) for codec in codecs]
    return NewArray(
        shape=None if shape is None else tuple(shape),
        data_type=value.get("data_type"),
        zarr_format=3,
        chunks=chunks,
        shards=shards,
        chunk_grid=grid,
        codecs=codecs,
        fill_value=value.get("fill_value"),
        key_encoding=value.get("chunk_key_encoding"),
        dimension_names=value.get("dimension_names"),
        dimension_units=attributes.pop(DIMENSION_UNITS, None),
        attributes=attributes,
        others={name: item for name, item in value.items() if name not in ARRAY_MEMBERS},
    )


def _without_shape(codec: Any) -> Any:
    """Without the shape of inner chunks, which is kept separately so that it can be replaced."""
    if not isinstance(codec, Mapping) or codec.get("name") != SHARDING:
        return codec
    configuration = {k: v for k, v in codec["configuration"].items() if k != "chunk_shape"}
    return {**codec, "configuration": configuration}


def _of_v2(value: Mapping[str, Any], attributes: Mapping[str, Any]) -> NewArray:
    shape, chunks, order = value.get("shape"), value.get("chunks"), value.get("order")
    chain = [*(value.get("filters") or ()), *filter(None, (value.get("compressor"),))]
    fields: dict[str, Any] = {}
    if "dtype" in value:
        dtype = numpy_dtype(value["dtype"])
        fields["endian"] = "big" if ">" in str(value["dtype"]) else "little"
        if dtype.kind == "O":
            first = chain[0]["id"] if chain else ""
            if first not in STRINGS:
                raise ValueError(f"objects stored by {first or 'no codec'!r}")
            fields["data_type"] = STRINGS[first][0].name
            # Some say 0 for none.
            fill = value.get("fill_value")
            fields["fill_value"] = None if fill is None else fill or ""
        else:
            fields["data_type"] = data_type_json(dtype)
            fields["fill_value"] = _fill(name_non_finite(value.get("fill_value")), dtype)
    if "filters" in value or "compressor" in value:
        fields["codecs"] = chain
    if order == "F" and shape is not None:
        fields["order"] = tuple(range(len(shape)))[::-1]
    if "dimension_separator" in value:
        separator = value["dimension_separator"] or "."
        fields["key_encoding"] = {"name": "v2", "configuration": {"separator": separator}}
    attributes = dict(attributes)
    return NewArray(
        shape=None if shape is None else tuple(shape),
        zarr_format=2,
        chunks=FREE if chunks is None else ChunkConstraints(tuple(chunks)),
        dimension_names=attributes.pop(V2_DIMENSIONS, None),
        dimension_units=attributes.pop(DIMENSION_UNITS, None),
        attributes=attributes,
        **fields,
    )


def _fill(value: Any, dtype: Any) -> Any:
    """The fill value as in v3 metadata; None stays None: undefined."""
    if value is None or dtype.kind in "biufMmU":
        return value
    data_type = data_type_of(dtype)
    raw = fill_bytes(value, data_type, dtype)
    if dtype.kind == "c":
        return value if isinstance(value, list) else None if not any(raw) else _parts(raw, dtype)
    return list(raw)


def _parts(raw: bytes, dtype: Any) -> list[str]:
    """Both parts of a complex number with their exact bits."""
    half = dtype.itemsize // 2
    return [f"0x{part[::-1].hex()}" for part in (raw[:half], raw[half:])]
