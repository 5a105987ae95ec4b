"""The codec pipeline of a v2 array: memory order, filters and compressor as codecs of v3.

https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html

A writer lays out a chunk's elements in the order and byte order of the array. Then each filter
interprets its input buffer in its own way; the compressor is the last of these steps. So a filter
is a bytes -> bytes codec, unless the next codec needs an array.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrfs import bounds
from zarrfs.format.codecs.buffer_filter import BufferFilter
from zarrfs.format.codecs.bytes import BytesCodec, NumpyBytesCodec
from zarrfs.format.codecs.numcodecs_config import encoded_types
from zarrfs.format.codecs.objects import OBJECT_CODECS, ObjectCodec
from zarrfs.format.codecs.transpose import TransposeCodec
from zarrfs.format.codecs.vlen import VlenCodec
from zarrfs.format.data_type import DataType
from zarrfs.format.extension_types.variable import BYTES, JSON, STRING
from zarrfs.format.metadata.pipelines import configured, in_order
from zarrfs.format.numpy_types import data_type_of
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import CodecKind, find_numcodecs_codec
from zarrfs.format.unserved import UnservedError

BUFFER_FILTERS = (
    "astype", "base64", "categorize", "delta", "fixedscaleoffset", "packbits", "quantize",
)  # fmt: skip
_OF_ARRAYS = ("pcodec", "zfpy", "grib")
STRINGS = {"vlen-utf8": (STRING, VlenCodec("string")), "vlen-bytes": (BYTES, VlenCodec("bytes"))}

Filter = Mapping[str, Any]


def read_filters(document: Mapping[str, Any]) -> list[Filter]:
    """``filters``, in encoding order. Raises ValueError."""
    filters = document.get("filters")
    if filters is not None and not isinstance(filters, list):
        raise ValueError("expected a list or null")
    bounds.check_count(len(filters or []), bounds.MOST_CODECS - 1, "codecs")
    return [_codec(member) for member in filters or []]


def read_compressor(document: Mapping[str, Any]) -> list[Filter]:
    """``compressor``, if there is one. Raises ValueError."""
    compressor = document.get("compressor")
    return [] if compressor is None else [_codec(compressor)]


def _codec(value: Any) -> Filter:
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        raise ValueError(f"{bounds.shown(repr(value))} is not a codec with an id")
    return value


def element_type(stored: np.dtype[Any], chain: Sequence[Filter]) -> DataType:
    """The data type of an array's elements; for objects, that of the codec that stores them.

    Raises UnservedError for objects without such a codec, or with one that runs code.
    """
    if stored.kind != "O":
        return data_type_of(stored)
    codec = chain[0]["id"] if chain else None
    if codec == "pickle":
        find_numcodecs_codec(codec)
    if codec in STRINGS:
        return STRINGS[codec][0]
    if codec not in OBJECT_CODECS:
        raise UnservedError(f"objects stored by {repr(codec) if codec else 'no codec'}")
    return JSON


def build_pipeline(
    stored: np.dtype[Any], order: str, rank: int, chain: Sequence[Filter]
) -> CodecPipeline:
    """Raises UnservedError for an unknown codec, ValueError for a malformed one."""
    codecs: list[tuple[CodecKind, Any]] = []
    if order == "F" and rank > 1:
        codecs.append(("array -> array", TransposeCodec(tuple(reversed(range(rank))))))
    ids = [member["id"] for member in chain]
    # Filters before a codec that takes arrays get arrays.
    arrays = next((i for i, name in enumerate(ids) if name in _OF_ARRAYS), -1)
    rest = list(chain)
    if stored.kind == "O":
        codecs.append(("array -> bytes", _object_codec(rest.pop(0))))
        current = np.dtype("u1")
    elif arrays >= 0:
        codecs += [_find(member, stored) for member in rest[: arrays + 1]]
        rest = rest[arrays + 1 :]
        current = np.dtype("u1")
    else:
        while rest and rest[0]["id"] == "bitround":
            codecs.append(_find(rest.pop(0), stored))
        codecs.append(("array -> bytes", _serialiser(stored)))
        current = stored
    for member in rest:
        if member["id"] in BUFFER_FILTERS:
            configuration = json.dumps(dict(member), sort_keys=True)
            codecs.append(("bytes -> bytes", BufferFilter(configuration)))
            current = encoded_types(member)[1]
        else:
            codecs.append(_find(member, current))
            current = np.dtype("u1")
    return in_order(codecs)


def _serialiser(stored: np.dtype[Any]) -> Any:
    if stored.names is not None:
        return NumpyBytesCodec(stored)
    return BytesCodec("big" if stored.byteorder == ">" else "little")


def _object_codec(member: Filter) -> Any:
    if member["id"] in STRINGS:
        return STRINGS[member["id"]][1]
    return ObjectCodec(json.dumps(dict(member), sort_keys=True))


def _codec_of(codec_id: str) -> tuple[CodecKind, Any] | None:
    if codec_id == "grib":
        # Written by kerchunk, never by zarrfs.
        from zarrfs.format.codecs.grib import GribCodec  # noqa: PLC0415

        return "array -> bytes", GribCodec
    return find_numcodecs_codec(codec_id)


def _find(member: Filter, current: np.dtype[Any]) -> tuple[CodecKind, Any]:
    configuration = {key: value for key, value in member.items() if key != "id"}
    if (found := _codec_of(member["id"])) is None:
        raise UnservedError(f"unknown codec {member['id']!r}")
    kind, make = found
    if member["id"] == "blosc" and configuration.get("typesize") is None:
        # numcodecs takes it from the item size of its input buffer.
        configuration["typesize"] = min(current.itemsize, 255)
    if member["id"] == "shuffle" and configuration.get("elementsize") in (0, "0"):
        # netCDF-C 4.9.3 to 4.10.1 writes 0 and shuffles the bytes of whole elements.
        configuration["elementsize"] = current.itemsize
    return kind, configured(member["id"], make, configuration)
