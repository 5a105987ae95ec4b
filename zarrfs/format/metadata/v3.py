"""``zarr.json``: Zarr v3 metadata, read into `ArrayMetadata` and `GroupMetadata`."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from zarrfs import bounds
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.chunk_grid import CHUNK_GRIDS, ChunkGrid
from zarrfs.format.chunk_layout import parse_chunk_keys
from zarrfs.format.data_type import DataType, from_big_words
from zarrfs.format.metadata import ordinary
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.kept import Consolidated
from zarrfs.format.metadata.members import ArrayMembers, Damage, layout_of, noting, reading
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata, NodeMetadata
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import REFUSED_CODECS, parse_data_type
from zarrfs.format.unserved import UnservedError

__all__ = ["DOCUMENT", "load_json", "parse_node", "problems"]

DOCUMENT = "zarr.json"

# Members whose values are not checked here.
_UNBOUNDED = ("attributes", "consolidated_metadata")


def parse_node(value: Any, document: str = DOCUMENT, damage: Damage | None = None) -> NodeMetadata:
    """The node that a parsed ``zarr.json`` describes. ``document`` names it in errors.

    damage : takes, as `noting` says, what is wrong with attributes and with a group.

    Raises MetadataError if it violates the specification, UnsupportedError if it needs something
    that zarrfs lacks.
    """
    if not isinstance(value, Mapping):
        raise MetadataError(document, "is not a JSON object")
    if value.get("zarr_format") != 3:
        raise MetadataError(
            document, bounds.shown(f"zarr_format is {value.get('zarr_format')!r}, expected 3")
        )
    try:
        return _parse_node(value, document, damage)
    except RecursionError as error:
        raise MetadataError(document, "is nested too deeply") from error


def problems(value: Any, document: str) -> list[str]:
    """All reasons why a parsed ``zarr.json`` cannot be served; empty if it can be served."""
    try:
        parse_node(value, document)
    except MetadataError as error:
        return _strict().texts(error.__cause__) or [error.reason]
    return []


def _parse_node(value: Mapping[str, Any], document: str, damage: Damage | None) -> NodeMetadata:
    attributes = value.get("attributes")
    with noting(damage):
        if attributes is not None and not isinstance(attributes, Mapping):
            raise MetadataError(document, "attributes: expected an object")
    if not isinstance(attributes, Mapping):
        attributes = {}
    is_group = value.get("node_type") == "group"
    with noting(damage if is_group else None), reading(document, "metadata"):
        bounds.check_values([item for name, item in value.items() if name not in _UNBOUNDED])
    if is_group:
        return _group(value, attributes, document, damage)
    _check_codecs_served(value.get("codecs"), document)
    if value.get("node_type") == "array":
        return _array(value, attributes, document)
    raise MetadataError(document, bounds.shown(f"node_type is {value.get('node_type')!r}"))


def _check_codecs_served(codecs: Any, document: str) -> None:
    """Checked first, so that the error for a draft codec names the codec and not a detail."""
    for codec in codecs if isinstance(codecs, list) else ():
        name = codec.get("name") if isinstance(codec, Mapping) else codec
        if isinstance(name, str) and (reason := REFUSED_CODECS.get(name)) is not None:
            raise UnsupportedError(document, f"codec {name!r} {reason}")


def _group(
    value: Mapping[str, Any],
    attributes: Mapping[str, Any],
    document: str,
    damage: Damage | None,
) -> GroupMetadata:
    consolidated = value.get("consolidated_metadata")
    if isinstance(consolidated, Mapping) and consolidated.get("kind") == "inline":
        # Each consolidated document is checked when its node is opened.
        value = {name: item for name, item in value.items() if name != "consolidated_metadata"}
    if not ordinary.is_group(value):
        with noting(damage):
            value = _strict().corrected_group(value, document)
            consolidated = value.get("consolidated_metadata", consolidated)
    children = None
    if isinstance(consolidated, Mapping) and isinstance(consolidated.get("metadata"), Mapping):
        children = Consolidated(consolidated["metadata"])
    return GroupMetadata(3, attributes, children)


def _array(value: Mapping[str, Any], attributes: Mapping[str, Any], document: str) -> ArrayMetadata:
    members = ordinary.array_members(value) or _strict().array_members(value, document)
    has_fill = value.get("fill_value") is not None
    summary = {
        "data_type": members.data_type,
        "fill_value": members.fill_value if has_fill else None,
        "codecs": members.codecs,
        "chunk_grid": members.chunk_grid,
        "chunk_key_encoding": members.chunk_key_encoding,
    }
    with reading(document, "data_type"):
        data_type = parse_data_type(members.data_type)
        bounds.check_element(data_type.item_size)
    with reading(document, "codecs"):
        pipeline = parse_pipeline(members.codecs)
    with reading(document, "fill_value"):
        fill = _fill_bytes(members.fill_value, data_type, pipeline)
    with reading(document, "chunk_grid"):
        grid = _chunk_grid(members)
    with reading(document, "chunk_key_encoding"):
        chunk_keys = parse_chunk_keys(members.chunk_key_encoding)
    return ArrayMetadata(
        zarr_format=3,
        shape=members.shape,
        layout=layout_of(document, grid, pipeline, data_type, fill),
        chunk_keys=chunk_keys,
        dimension_names=members.dimension_names,
        attributes=attributes,
        summary=summary,
        has_fill=has_fill,
    )


def _strict() -> ModuleType:
    from zarrfs.format.metadata import strict  # noqa: PLC0415 - a slow import, seldom needed

    return strict


def _fill_bytes(value: Any, data_type: DataType, pipeline: CodecPipeline) -> bytes:
    fill = data_type.fill_bytes(value)
    # Base64 of a whole record has the byte order of the stored elements.
    if isinstance(value, str) and data_type.name in ("struct", "structured"):
        endian = getattr(pipeline.array_bytes, "endian", "little")
        stored = data_type.stored_dtype(big_endian=endian == "big")
        if stored != data_type.dtype:
            return from_big_words(np.frombuffer(fill, stored), data_type).tobytes()
    return fill


def _chunk_grid(members: ArrayMembers) -> ChunkGrid:
    if (make := CHUNK_GRIDS.get(members.grid_name)) is None:
        raise UnservedError(f"unknown chunk grid {members.grid_name!r}")
    return make(members.shape, members.grid_configuration)
