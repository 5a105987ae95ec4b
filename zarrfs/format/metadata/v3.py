"""``zarr.json``: Zarr v3 metadata, read into `ArrayMetadata` and `GroupMetadata`.

The structure is validated by ``zarr_metadata``, the Zarr developers' own model of
the specification, after known harmless deviations have been put right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from zarr_metadata import MetadataValidationError
from zarr_metadata.model import UNSET, ZarrV3ArrayMetadata, ZarrV3GroupMetadata

from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.chunk_key import CHUNK_KEY_ENCODINGS, ChunkKeyEncoding
from zarrfs.format.chunk_layout import plan_layout
from zarrfs.format.data_type import DataType
from zarrfs.format.metadata.lenient import put_right
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata, NodeMetadata
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import CodecKind, find_codec, find_data_type

DOCUMENT = "zarr.json"

# The largest file that Linux can have, and the most axes that numpy's arrays can.
_LARGEST_FILE = 2**63 - 1
_MOST_AXES = 32


def load_json(data: bytes, document: str) -> Any:
    """Raises MetadataError naming ``document``."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MetadataError(document, f"is not JSON: {error}") from error


def parse_node(value: Any, document: str = DOCUMENT) -> NodeMetadata:
    """What a parsed ``zarr.json`` says. ``document`` names it in errors.

    Raises MetadataError where it breaks the specification, UnsupportedError
    where it asks for something that is not there.
    """
    if not isinstance(value, Mapping):
        raise MetadataError(document, "is not a JSON object")
    if value.get("zarr_format") != 3:
        raise MetadataError(document, f"zarr_format is {value.get('zarr_format')!r}, expected 3")
    try:
        return _parse_node(value, document)
    except MetadataValidationError as error:
        raise MetadataError(document, _describe(error)) from error
    except RecursionError as error:
        raise MetadataError(document, "is nested too deeply") from error


def _parse_node(value: Mapping[str, Any], document: str) -> NodeMetadata:
    attributes = value.get("attributes")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise MetadataError(document, "attributes: expected an object")
    # Attributes are free, and writers put bare NaN in them, which the model refuses.
    value = {**put_right(value), "attributes": {}}
    if value.get("node_type") == "group":
        model = ZarrV3GroupMetadata.from_json(value)
        return _group(model, value, attributes or {}, document)
    if value.get("node_type") == "array":
        return _array(ZarrV3ArrayMetadata.from_json(value), attributes or {}, document)
    raise MetadataError(document, f"node_type is {value.get('node_type')!r}")


def _describe(error: MetadataValidationError) -> str:
    first = error.problems[0]
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in first.loc).lstrip(".")
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    return f"{where}: {first.message}{more}" if where else f"{first.message}{more}"


def _group(
    model: ZarrV3GroupMetadata,
    value: Mapping[str, Any],
    attributes: Mapping[str, Any],
    document: str,
) -> GroupMetadata:
    _check_understood(model.must_understand_fields, document)
    consolidated = value.get("consolidated_metadata")
    children = None
    if isinstance(consolidated, Mapping) and isinstance(consolidated.get("metadata"), Mapping):
        children = consolidated["metadata"]
    return GroupMetadata(3, attributes, children)


def _array(
    model: ZarrV3ArrayMetadata, attributes: Mapping[str, Any], document: str
) -> ArrayMetadata:
    _check_understood(model.must_understand_fields, document)
    if model.storage_transformers:
        raise UnsupportedError(
            document, f"unknown storage transformer {model.storage_transformers[0].name!r}"
        )
    data_type = _data_type(model, document)
    shape = tuple(model.shape)
    if len(shape) > _MOST_AXES:
        raise UnsupportedError(document, f"has {len(shape)} axes, at most {_MOST_AXES} are served")
    if math.prod(shape) * data_type.item_size > _LARGEST_FILE:
        raise UnsupportedError(document, "is larger than a file can be (8 EiB)")
    try:
        fill = data_type.fill_bytes(model.fill_value)
    except ValueError as error:
        raise MetadataError(document, f"fill_value: {error}") from error
    pipeline = parse_pipeline([_plain(codec.json) for codec in model.codecs], document)
    try:
        layout = plan_layout(_chunk_grid(model, document), pipeline, data_type, fill)
    except ValueError as error:
        raise MetadataError(document, f"codecs: {error}") from error
    return ArrayMetadata(
        zarr_format=3,
        shape=shape,
        layout=layout,
        chunk_keys=_chunk_keys(model, document),
        dimension_names=() if model.dimension_names is UNSET else tuple(model.dimension_names),
        attributes=attributes,
        summary={
            "data_type": _plain(model.data_type.json),
            "fill_value": _plain(model.fill_value),
            "codecs": [_plain(codec.json) for codec in model.codecs],
            "chunk_grid": _plain(model.chunk_grid.json),
            "chunk_key_encoding": _plain(model.chunk_key_encoding.json),
        },
    )


def _check_understood(fields: Mapping[str, Any], document: str) -> None:
    for name in fields:
        raise UnsupportedError(document, f"unknown member {name!r} that must be understood")


def _plain(value: Any) -> Any:
    """JSON of lists and dicts, from the model's read-only forms."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _data_type(model: ZarrV3ArrayMetadata, document: str) -> DataType:
    data_type = find_data_type(model.data_type.name)
    if data_type is None:
        raise UnsupportedError(document, f"unknown data type {model.data_type.name!r}")
    return data_type


def _chunk_grid(model: ZarrV3ArrayMetadata, document: str) -> ChunkGrid:
    if model.chunk_grid.name != "regular":
        raise UnsupportedError(document, f"unknown chunk grid {model.chunk_grid.name!r}")
    configuration: Any = model.chunk_grid.configuration
    return ChunkGrid.regular(tuple(model.shape), tuple(configuration["chunk_shape"]))


def _chunk_keys(model: ZarrV3ArrayMetadata, document: str) -> ChunkKeyEncoding:
    encoding = model.chunk_key_encoding
    if (make := CHUNK_KEY_ENCODINGS.get(encoding.name)) is None:
        raise UnsupportedError(document, f"unknown chunk key encoding {encoding.name!r}")
    configuration: Any = encoding.configuration
    return make(**configuration)


def parse_pipeline(codecs: Sequence[Any], document: str) -> CodecPipeline:
    """Configure codecs from their validated JSON, in encoding order."""
    by_kind: dict[CodecKind, list[Any]] = {
        "array -> array": [],
        "array -> bytes": [],
        "bytes -> bytes": [],
    }
    for value in codecs:
        if isinstance(value, str):
            name, configuration = value, {}
        else:
            name, configuration = value["name"], dict(value.get("configuration") or {})
        if (found := find_codec(name)) is None:
            raise UnsupportedError(document, f"unknown codec {name!r}")
        kind, make = found
        for member in ("codecs", "index_codecs"):
            if member in configuration:
                configuration[member] = parse_pipeline(configuration[member], document)
        for member, item in configuration.items():
            if isinstance(item, list):
                configuration[member] = tuple(item)
        try:
            by_kind[kind].append(make(**configuration))
        except (TypeError, ValueError) as error:
            raise MetadataError(document, f"codec {name!r}: {error}") from error
    if len(by_kind["array -> bytes"]) != 1:
        raise MetadataError(document, "expected exactly one array -> bytes codec")
    return CodecPipeline(
        tuple(by_kind["array -> array"]),
        by_kind["array -> bytes"][0],
        tuple(by_kind["bytes -> bytes"]),
    )
