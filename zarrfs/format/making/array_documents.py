"""The documents of a new array: ``.zarray`` and ``.zattrs``, or ``zarr.json``.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html. Omitted parts are chosen as TensorStore's
drivers choose them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.format.codec_chain import ChainTarget, complete_chain, inner_chunk_shape
from zarrfs.format.codecs.objects import OBJECT_CODECS
from zarrfs.format.data_type import DataType
from zarrfs.format.extension_types.struct import OLD_STRUCT
from zarrfs.format.making.chunk_choice import ChunkConstraints, choose_chunk, choose_chunks
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
from zarrfs.format.metadata.documents import V2_ARRAY, V2_ATTRIBUTES, V2_DIMENSIONS, V3_NODE
from zarrfs.format.metadata.members import plain
from zarrfs.format.metadata.older.v2 import read_array_v2
from zarrfs.format.metadata.older.v2_codecs import BUFFER_FILTERS, STRINGS
from zarrfs.format.metadata.older.v2_dtype import numpy_dtype
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.format.numpy_types import data_type_of
from zarrfs.format.registry import find_numcodecs_codec, parse_data_type
from zarrfs.format.unserved import name_and_configuration

_DEFAULT_COMPRESSOR = {"id": "blosc"}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "blosc": {"cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
    "zstd": {"level": 1},
    "gzip": {"level": 1},
    "zlib": {"level": 1},
    "bz2": {"level": 1},
}
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2, "auto": -1}
_NEED_DTYPE = ("delta", "fixedscaleoffset", "quantize")
_OBJECT_CODECS = (*STRINGS, *OBJECT_CODECS)


def documents_v2(array: NewArray) -> dict[str, bytes]:
    """The documents by name, that of the array itself first.

    zarrfs has read them back, so it serves them. Raises as
    `zarrfs.format.making.array_documents.documents_v3`.
    """
    shape, type_json = needed(array)
    data_type = parse_data_type(type_json)
    if array.shards is not None or array.chunk_grid is not None:
        raise ValueError("Zarr 2 has chunks of one shape, and no shards")
    chain, endian = _chain(array)
    dtype = _dtype(data_type, endian)
    attributes = attributes_of(array, len(shape))
    if (names := per_axis("dimension names", array.dimension_names, len(shape))) is not None:
        if None in names:
            raise ValueError("in Zarr 2 every axis has a name, or none has")
        attributes[V2_DIMENSIONS] = names
    filters, compressor = _split(_complete(chain, data_type, dtype))
    zarray = {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(choose_chunk(shape, array.chunks)),
        "dtype": dtype,
        "compressor": compressor,
        "fill_value": _fill(array, data_type, dtype, named=V2_DIMENSIONS in attributes),
        "order": _order(array.order, len(shape)),
        "filters": filters or None,
        "dimension_separator": _separator(array.key_encoding),
    }
    read_array_v2(zarray, attributes)
    documents = {V2_ARRAY: json_document(zarray)}
    return documents | ({V2_ATTRIBUTES: json_document(attributes)} if attributes else {})


def _dtype(data_type: DataType, endian: str) -> Any:
    """The type as in ``.zarray``. Raises ValueError for types that Zarr 2 lacks."""
    if not data_type.fixed_size:
        return "|O"
    stored = data_type.stored_dtype(big_endian=endian == "big")
    if stored.isbuiltin != 2 and data_type.canonical is None:
        dtype = plain(stored.descr) if stored.names is not None else stored.str
        try:
            same = data_type_of(numpy_dtype(dtype))
        except ValueError:
            same = None
        if same is not None and same.dtype == data_type.dtype:
            return dtype
    raise ValueError(f"Zarr 2 has no data type {data_type.name}")


def _fill(array: NewArray, data_type: DataType, dtype: Any, *, named: bool) -> Any:
    if array.fill_value is None:
        # Undefined, which every reader treats as zero. Some have none among texts; but where axes
        # have names, xarray would mask empty ones.
        return None if data_type.fixed_size or named else ""
    value, raw = fill_of(array, data_type)
    if data_type.dtype.kind in "SV":
        element = np.frombuffer(raw, data_type.dtype).astype(numpy_dtype(dtype))
        return base64.b64encode(element.tobytes()).decode()
    return value


def _order(order: Sequence[int] | None, rank: int) -> str:
    if order is None:
        return "C"
    check_order(order, rank)
    if list(order) == list(range(rank)):
        return "C"
    if list(order) == list(range(rank))[::-1]:
        return "F"
    raise ValueError("Zarr 2 has only the orders C and F")


def _separator(encoding: Any) -> str:
    match encoding:
        case None | "v2" | {"name": "v2"}:
            configuration = encoding.get("configuration") if isinstance(encoding, Mapping) else None
            return str((configuration or {}).get("separator", "."))
    raise ValueError("Zarr 2 has only the chunk key encoding v2, with the separator . or /")


def _chain(array: NewArray) -> tuple[list[dict[str, Any]], str]:
    """Codecs in the configuration of numcodecs, and the byte order of the elements."""
    endian = array.endian or "little"
    if array.codecs is None:
        return [dict(_DEFAULT_COMPRESSOR)], endian
    chain = []
    for codec in array.codecs:
        if isinstance(codec, Mapping) and isinstance(codec.get("id"), str):
            chain.append(dict(codec))
            continue
        name, given = name_and_configuration(codec, "codec")
        if name == "bytes":
            endian = given.get("endian", endian)
        elif name in ("transpose", "sharding_indexed"):
            raise ValueError(f"Zarr 2 has no codec {name}")
        else:
            chain.append({"id": name.removeprefix("numcodecs."), **given})
    return chain, endian


def _complete(chain: list[dict[str, Any]], data_type: DataType, dtype: Any) -> list[dict[str, Any]]:
    if not data_type.fixed_size and not any(codec["id"] in _OBJECT_CODECS for codec in chain[:1]):
        name = next(name for name, (known, _) in STRINGS.items() if known.name == data_type.name)
        chain = [{"id": name}, *chain]
    done = []
    for given in chain:
        codec = {**given}
        for member, value in _DEFAULTS.get(codec["id"], {}).items():
            codec.setdefault(member, value)
        if codec["id"] in _NEED_DTYPE:
            codec.setdefault("dtype", dtype)
        if codec["id"] == "blosc":
            codec["shuffle"] = _SHUFFLES.get(codec["shuffle"], codec["shuffle"])
        done.append(codec)
    return done


def _split(chain: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Filters, and the compressor: the last codec, if it is bytes -> bytes."""
    if not chain or chain[-1]["id"] in (*_OBJECT_CODECS, *BUFFER_FILTERS):
        return chain, None
    found = find_numcodecs_codec(chain[-1]["id"])
    if found is not None and found[0] == "array -> array":
        return chain, None
    return chain[:-1], chain[-1]


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
    endian = array.endian or "little"
    if data_type.name == OLD_STRUCT:
        # zarr-python 3.1 reads no other.
        endian = "little"
        fill = fill if "big" in str(codecs) else base64.b64encode(fill_bytes).decode()
    if array.order is not None:
        check_order(array.order, len(shape))
    read, write = _chunk_shapes(array, shape, codecs)
    target = ChainTarget(
        data_type,
        fill_bytes,
        read,
        read != write,
        endian=endian,
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
