"""``zarr.json`` of a new array, with shapes, codecs and defaults as TensorStore chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec_chain import ChainTarget, complete_chain, inner_chunk_shape
from zarrfs.format.making.chunk_choice import ChunkConstraints, choose_chunks
from zarrfs.format.making.new_array import (
    FREE,
    NewArray,
    attributes_of,
    check_order,
    fill_of,
    json_document,
    needed,
    per_axis,
)
from zarrfs.format.metadata.documents import V3_NODE
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.format.registry import parse_data_type

_DEFAULT_KEYS = {"name": "default", "configuration": {"separator": "/"}}


def documents_v3(array: NewArray) -> dict[str, bytes]:
    """The one document, by its name. zarrfs has read it back, so it serves the array.

    Raises ValueError for contradictory or malformed parts, MetadataError and UnsupportedError
    for parts that do not fit together.
    """
    document = _document(array)
    parse_node(document)
    return {V3_NODE: json_document(document)}


def _document(array: NewArray) -> dict[str, Any]:
    shape, type_json = needed(array)
    data_type = parse_data_type(type_json)
    fill, fill_bytes = fill_of(array, data_type)
    codecs = [] if array.codecs is None else array.codecs
    if array.order is not None:
        check_order(array.order, len(shape))
    read, write = _chunk_shapes(array, shape, codecs)
    target = ChainTarget(
        data_type,
        fill_bytes,
        read,
        read != write,
        endian=array.endian or "little",
        inner_order=array.order,
    )
    document: dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": type_json,
        "chunk_grid": array.chunk_grid
        or {"name": "regular", "configuration": {"chunk_shape": list(write)}},
        "chunk_key_encoding": array.key_encoding or _DEFAULT_KEYS,
        "fill_value": fill,
        "codecs": complete_chain(codecs, target),
    }
    if attributes := attributes_of(array, len(shape)):
        document["attributes"] = attributes
    if names := per_axis("dimension names", array.dimension_names, len(shape)):
        document["dimension_names"] = names
    return document | dict(array.others)


def _chunk_shapes(array: NewArray, shape: Shape, codecs: Sequence[Any]) -> tuple[Shape, Shape]:
    inner = inner_chunk_shape(codecs, len(shape))
    if array.chunk_grid is not None:
        # Its shards, if there are any, vary in shape; the chain gives the inner chunks.
        chunk = inner or tuple(1 for _ in shape)
        return chunk, chunk
    read = array.chunks
    write = read if array.shards is None else array.shards
    if inner is not None:
        if tuple(read.lengths) not in ((), inner):
            raise ValueError(
                f"chunks of {list(read.lengths)} are asked for, the codecs have {list(inner)}"
            )
        read = ChunkConstraints(inner)
        write = FREE if array.shards is None else write
    return choose_chunks(shape, read, write)
