"""``zarr.json``: Zarr v3 metadata, read into `ArrayMetadata` and `GroupMetadata`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrfs import bounds
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.chunk_grid import parse_grid, shape_of
from zarrfs.format.chunk_layout import parse_chunk_keys
from zarrfs.format.data_type import DataType, from_big_words
from zarrfs.format.metadata.documents import V3_NODE
from zarrfs.format.metadata.kept import Consolidated
from zarrfs.format.metadata.lenient import corrected
from zarrfs.format.metadata.members import Damage, layout_of, noting, reading
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata, NodeMetadata
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import parse_data_type
from zarrfs.format.unserved import UnservedError, name_and_configuration

# Members whose values are not checked here.
_UNBOUNDED = ("attributes", "consolidated_metadata")
_NEEDED = (
    "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
)  # fmt: skip
_NODE = ("zarr_format", "node_type", "attributes")
ARRAY_MEMBERS = {*_NODE, *_NEEDED, "dimension_names", "storage_transformers"}
_GROUP_MEMBERS = {*_NODE, "consolidated_metadata"}


def parse_node(value: Any, document: str = V3_NODE, damage: Damage | None = None) -> NodeMetadata:
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
        return _faults(value, error)
    return []


def _faults(value: Any, error: MetadataError) -> list[str]:
    """Each fault with its place, as the specification's model tells them; or only ``error``."""
    is_array = isinstance(value, Mapping) and value.get("node_type") == "array"
    if isinstance(error, UnsupportedError) or not is_array:
        return [error.reason]
    from zarrfs.format.metadata.strict import deviations  # noqa: PLC0415 - a slow import

    return deviations(corrected(value)) or [error.reason]


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
    has_fill = value.get("fill_value") is not None
    value = corrected(value)
    if is_group:
        return _group(value, attributes, document, damage)
    if value.get("node_type") != "array":
        raise MetadataError(document, bounds.shown(f"node_type is {value.get('node_type')!r}"))
    try:
        return _array(value, attributes, document, has_fill)
    except MetadataError as error:
        first, *others = _faults(value, error)
        more = f" (and {len(others)} more)" if others else ""
        raise type(error)(document, f"{first}{more}") from error


def _check_members(value: Mapping[str, Any], known: set[str], document: str) -> None:
    for name, item in value.items():
        may_be_ignored = isinstance(item, Mapping) and item.get("must_understand") is False
        if name not in known and not may_be_ignored:
            shown = bounds.shown(repr(name))
            raise UnsupportedError(document, f"unknown member {shown} that must be understood")


def _group(
    value: Mapping[str, Any],
    attributes: Mapping[str, Any],
    document: str,
    damage: Damage | None,
) -> GroupMetadata:
    consolidated = value.get("consolidated_metadata")
    children = None
    with noting(damage):
        _check_members(value, _GROUP_MEMBERS, document)
        is_inline = isinstance(consolidated, Mapping) and consolidated.get("kind") == "inline"
        if consolidated is not None and not is_inline:
            raise MetadataError(document, "consolidated_metadata: is not an object of kind inline")
    # Each consolidated document is checked when its node is opened.
    if isinstance(consolidated, Mapping) and isinstance(consolidated.get("metadata"), Mapping):
        children = Consolidated(consolidated["metadata"])
    return GroupMetadata(3, attributes, children)


def _array(
    value: Mapping[str, Any], attributes: Mapping[str, Any], document: str, has_fill: bool
) -> ArrayMetadata:
    for member in _NEEDED:
        if member not in value:
            raise MetadataError(document, f"{member}: is missing")
    # First, so that the error for a document of a draft names its codec and not a detail.
    with reading(document, "codecs"):
        pipeline = parse_pipeline(value["codecs"])
    _check_members(value, ARRAY_MEMBERS, document)
    with reading(document, "storage_transformers"):
        if (transformers := value.get("storage_transformers", [])) != []:
            name, _ = name_and_configuration(transformers[0], "storage transformer")
            raise UnservedError(f"unknown storage transformer {name!r}")
    with reading(document, "shape"):
        shape = shape_of(value["shape"])
    with reading(document, "dimension_names"):
        names = _names(value["dimension_names"], len(shape)) if "dimension_names" in value else ()
    with reading(document, "data_type"):
        data_type = parse_data_type(value["data_type"])
        bounds.check_element(data_type.item_size)
    with reading(document, "fill_value"):
        fill = _fill_bytes(value["fill_value"], data_type, pipeline)
    with reading(document, "chunk_grid"):
        grid = parse_grid(value["chunk_grid"], shape)
    with reading(document, "chunk_key_encoding"):
        chunk_keys = parse_chunk_keys(value["chunk_key_encoding"])
    summary = {
        "data_type": value["data_type"],
        "fill_value": value["fill_value"] if has_fill else None,
        "codecs": value["codecs"],
        "chunk_grid": value["chunk_grid"],
        "chunk_key_encoding": value["chunk_key_encoding"],
    }
    return ArrayMetadata(
        zarr_format=3,
        shape=shape,
        layout=layout_of(document, grid, pipeline, data_type, fill),
        chunk_keys=chunk_keys,
        dimension_names=names,
        attributes=attributes,
        summary=summary,
        has_fill=has_fill,
    )


def _names(value: Any, rank: int) -> tuple[str | None, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if len(names) != rank or not all(isinstance(name, str | None) for name in names):
        raise ValueError(f"expected a list of {rank} names or nulls")
    return names


def _fill_bytes(value: Any, data_type: DataType, pipeline: CodecPipeline) -> bytes:
    if data_type.name == "string" and not isinstance(value, str):
        raise ValueError("expected a string")  # only version 2 has numbers in place of text
    fill = data_type.fill_bytes(value)
    # Base64 of a whole record has the byte order of the stored elements.
    if isinstance(value, str) and data_type.name in ("struct", "structured"):
        endian = getattr(pipeline.array_bytes, "endian", "little")
        stored = data_type.stored_dtype(big_endian=endian == "big")
        if stored != data_type.dtype:
            return from_big_words(np.frombuffer(fill, stored), data_type).tobytes()
    return fill
