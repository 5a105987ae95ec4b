"""``.zarray``, ``.zgroup``, ``.zattrs``, ``.zmetadata``: Zarr v2, converted to the form of v3.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html

This module checks the structure itself. The strict reading of ``zarr_metadata`` would refuse much
of the data that old writers produced: fill values of another type, missing or superfluous members,
one-byte types with a byte order, bare NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs import bounds
from zarrfs.errors import MetadataError
from zarrfs.format.chunk_grid import ChunkGrid, shape_of
from zarrfs.format.chunk_layout import V2Keys
from zarrfs.format.metadata.documents import (
    V2_ARRAY,
    V2_ATTRIBUTES,
    V2_CONSOLIDATED,
    V2_DIMENSIONS,
    V2_GROUP,
    load_json,
)
from zarrfs.format.metadata.kept import Consolidated
from zarrfs.format.metadata.lenient import name_non_finite, whole
from zarrfs.format.metadata.members import Damage, layout_of, noting, plain, reading
from zarrfs.format.metadata.node import ArrayMetadata, GroupMetadata
from zarrfs.format.metadata.older.v2_codecs import (
    Filter,
    build_pipeline,
    element_type,
    read_compressor,
    read_filters,
)
from zarrfs.format.metadata.older.v2_dtype import fill_bytes, numpy_dtype
from zarrfs.format.unserved import UnservedError


def parse_array_v2(zarray: bytes, zattrs: bytes | None) -> ArrayMetadata:
    """The array that the two documents describe; ``zattrs`` is None if there is none.

    Raises MetadataError and UnsupportedError.
    """
    attributes = None if zattrs is None else load_json(zattrs, V2_ATTRIBUTES)
    return read_array_v2(load_json(zarray, V2_ARRAY), attributes)


def read_consolidated_v2(value: Any) -> Consolidated:
    """The documents in a parsed ``.zmetadata``, by the node's path, then by the document's name.

    The group itself has the path ``""``. Raises MetadataError.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("metadata"), Mapping):
        raise MetadataError(V2_CONSOLIDATED, "has no object metadata")
    nodes: dict[str, dict[str, Any]] = {}
    for key, document in value["metadata"].items():
        path, _, name = key.rpartition("/")
        nodes.setdefault(path, {})[name] = document
    return Consolidated(nodes)


def read_group_v2(
    zgroup: Any,
    zattrs: Any,
    children: Consolidated | None = None,
    damage: Damage | None = None,
) -> GroupMetadata:
    """The group that parsed documents describe; with ``children``, all nodes below it too.

    damage : as `noting` takes it.
    """
    with noting(damage):
        if not isinstance(zgroup, Mapping) or zgroup.get("zarr_format") != 2:
            raise MetadataError(V2_GROUP, "is not an object with zarr_format 2")
    return GroupMetadata(2, read_attributes(zattrs, V2_ATTRIBUTES, damage), children)


def read_array_v2(zarray: Any, zattrs: Any, damage: Damage | None = None) -> ArrayMetadata:
    """As `parse_array_v2`, from parsed documents; ``damage`` as `noting` takes it."""
    try:
        return _array(zarray, read_attributes(zattrs, V2_ATTRIBUTES, damage))
    except RecursionError as error:
        raise MetadataError(V2_ARRAY, "is nested too deeply") from error


def read_attributes(value: Any, document: str, damage: Damage | None) -> Mapping[str, Any]:
    """The attributes in a parsed document, which may be none."""
    with noting(damage):
        if value is not None and not isinstance(value, Mapping):
            raise MetadataError(document, "is not a JSON object")
    return value if isinstance(value, Mapping) else {}


def _array(value: Any, attributes: Mapping[str, Any]) -> ArrayMetadata:
    if not isinstance(value, Mapping):
        raise MetadataError(V2_ARRAY, "is not a JSON object")
    if value.get("zarr_format") != 2:
        raise MetadataError(V2_ARRAY, f"zarr_format is {value.get('zarr_format')!r}, expected 2")
    grid = read_grid(value, V2_ARRAY)
    separator = value.get("dimension_separator") or "."
    if separator not in (".", "/"):
        raise MetadataError(V2_ARRAY, bounds.shown(f"dimension_separator is {separator!r}"))
    with reading(V2_ARRAY, "filters"):
        chain = read_filters(value)
    with reading(V2_ARRAY, "compressor"):
        chain += read_compressor(value)
    layout, summary = layout_and_summary(value, grid, chain, V2_ARRAY)
    summary["chunk_key_encoding"] = {"name": "v2", "configuration": {"separator": separator}}
    return ArrayMetadata(
        zarr_format=2,
        shape=grid.shape,
        layout=layout,
        chunk_keys=V2Keys(separator),
        dimension_names=_dimension_names(attributes, len(grid.axes)),
        attributes=attributes,
        summary=summary,
        has_fill=value.get("fill_value") is not None,
    )


def layout_and_summary(
    value: Mapping[str, Any], grid: ChunkGrid, chain: list[Filter], document: str
) -> tuple[Any, dict[str, Any]]:
    """The layout, which v2 and v1 have in common, and its summary for users."""
    order = value.get("order")
    if order not in ("C", "F"):
        raise MetadataError(document, bounds.shown(f"order is {order!r}"))
    with reading(document, "metadata"):
        bounds.check_values(value)
    with reading(document, "dtype"):
        stored = numpy_dtype(value.get("dtype"))
        bounds.check_element(stored.itemsize)
        if not stored.itemsize:
            raise UnservedError(f"elements of {stored} have no bytes")
        data_type = element_type(stored, chain)
    with reading(document, "fill_value"):
        fill = fill_bytes(name_non_finite(value.get("fill_value")), data_type, stored)
    with reading(document, "codecs"):
        pipeline = build_pipeline(stored, order, len(grid.axes), chain)
    summary = {
        "data_type": data_type.name,
        "dtype": plain(value.get("dtype")),
        "fill_value": plain(value.get("fill_value")),
        "order": order,
        "codecs": [
            {
                "name": f"numcodecs.{member['id']}",
                "configuration": {k: v for k, v in member.items() if k != "id"},
            }
            for member in chain
        ],
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": list(grid.largest_chunk)},
        },
    }
    return layout_of(document, grid, pipeline, data_type, fill), summary


def read_grid(value: Mapping[str, Any], document: str) -> ChunkGrid:
    with reading(document, "shape"):
        shape = shape_of(whole(value.get("shape")))
    with reading(document, "chunks"):
        chunks = shape_of(whole(value.get("chunks")))
    if len(shape) != len(chunks):
        raise MetadataError(document, f"shape has {len(shape)} axes, chunks has {len(chunks)}")
    if any(chunk == 0 and extent for extent, chunk in zip(shape, chunks, strict=True)):
        raise MetadataError(document, "a chunk has no elements")
    # zarr-python writes 0 for an axis without elements, where any length means the same.
    return ChunkGrid.regular(shape, tuple(chunk or 1 for chunk in chunks))


def _dimension_names(attributes: Mapping[str, Any], rank: int) -> tuple[str | None, ...]:
    names = attributes.get(V2_DIMENSIONS)
    if isinstance(names, list) and len(names) == rank and all(isinstance(n, str) for n in names):
        return tuple(names)
    return ()
