"""``zarr.json``: Zarr v3 metadata, read into `ArrayMetadata` and `GroupMetadata`.

The structure is validated by ``zarr_metadata``, the Zarr developers' own model of
the specification, after known harmless deviations have been put right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from zarr_metadata import MetadataValidationError
from zarr_metadata.model import UNSET, ZarrV3ArrayMetadata, ZarrV3GroupMetadata

from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.chunk_grids import CHUNK_GRIDS
from zarrfs.format.chunk_key import parse_chunk_keys
from zarrfs.format.data_type import DataType, from_big_words
from zarrfs.format.metadata.json_text import load_json
from zarrfs.format.metadata.layout import layout_of, plain, reading
from zarrfs.format.metadata.lenient import put_right
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata, NodeMetadata
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import REFUSED_CODECS, parse_data_type
from zarrfs.format.unserved import UnservedError

__all__ = ["DOCUMENT", "load_json", "parse_node"]

DOCUMENT = "zarr.json"


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
    _check_codecs_served(value.get("codecs"), document)
    # Attributes are free, and writers put bare NaN in them, which the model refuses.
    value = {**put_right(value), "attributes": {}}
    if value.get("node_type") == "group":
        model = ZarrV3GroupMetadata.from_json(value)
        return _group(model, value, attributes or {}, document)
    if value.get("node_type") == "array":
        return _array(ZarrV3ArrayMetadata.from_json(value), attributes or {}, document)
    raise MetadataError(document, f"node_type is {value.get('node_type')!r}")


def _check_codecs_served(codecs: Any, document: str) -> None:
    """Before anything else, so that a draft is refused for what it is and not for a detail."""
    for codec in codecs if isinstance(codecs, list) else ():
        name = codec.get("name") if isinstance(codec, Mapping) else codec
        if isinstance(name, str) and (reason := REFUSED_CODECS.get(name)) is not None:
            raise UnsupportedError(document, f"codec {name!r} {reason}")


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
    summary = {
        "data_type": plain(model.data_type.json),
        "fill_value": plain(model.fill_value),
        "codecs": [plain(codec.json) for codec in model.codecs],
        "chunk_grid": plain(model.chunk_grid.json),
        "chunk_key_encoding": plain(model.chunk_key_encoding.json),
    }
    with reading(document, "data_type"):
        data_type = parse_data_type(summary["data_type"])
    with reading(document, "codecs"):
        pipeline = parse_pipeline(summary["codecs"])
    with reading(document, "fill_value"):
        fill = _fill_bytes(summary["fill_value"], data_type, pipeline)
    with reading(document, "chunk_grid"):
        grid = _chunk_grid(model)
    with reading(document, "chunk_key_encoding"):
        chunk_keys = parse_chunk_keys(summary["chunk_key_encoding"])
    return ArrayMetadata(
        zarr_format=3,
        shape=tuple(model.shape),
        layout=layout_of(document, grid, pipeline, data_type, fill),
        chunk_keys=chunk_keys,
        dimension_names=() if model.dimension_names is UNSET else tuple(model.dimension_names),
        attributes=attributes,
        summary=summary,
    )


def _fill_bytes(value: Any, data_type: DataType, pipeline: CodecPipeline) -> bytes:
    fill = data_type.fill_bytes(value)
    # Base64 of a whole record has the byte order of the elements that are stored.
    if isinstance(value, str) and data_type.name in ("struct", "structured"):
        endian = getattr(pipeline.array_bytes, "endian", "little")
        stored = data_type.stored_dtype(big_endian=endian == "big")
        if stored != data_type.dtype:
            return from_big_words(np.frombuffer(fill, stored), data_type).tobytes()
    return fill


def _check_understood(fields: Mapping[str, Any], document: str) -> None:
    for name in fields:
        raise UnsupportedError(document, f"unknown member {name!r} that must be understood")


def _chunk_grid(model: ZarrV3ArrayMetadata) -> ChunkGrid:
    if (make := CHUNK_GRIDS.get(model.chunk_grid.name)) is None:
        raise UnservedError(f"unknown chunk grid {model.chunk_grid.name!r}")
    return make(tuple(model.shape), plain(model.chunk_grid.configuration) or {})
