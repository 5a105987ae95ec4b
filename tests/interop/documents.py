"""Parts of ``zarr.json`` documents, as the specification writes them."""

import json
from collections.abc import Sequence
from typing import Any

from tests.fs import documents
from tests.fs.documents import CRC32C

Json = dict[str, Any]


def array_bytes(endian: str = "little") -> Json:
    return {"name": "bytes", "configuration": {"endian": endian}}


def transpose(order: Sequence[int]) -> Json:
    return {"name": "transpose", "configuration": {"order": list(order)}}


def gzip(level: int = 1) -> Json:
    return {"name": "gzip", "configuration": {"level": level}}


def zstd(level: int = 1, *, checksum: bool = False) -> Json:
    return {"name": "zstd", "configuration": {"level": level, "checksum": checksum}}


def blosc(
    cname: str = "lz4",
    shuffle: str = "shuffle",
    *,
    clevel: int = 5,
    typesize: int = 4,
    blocksize: int = 0,
) -> Json:
    configuration: Json = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
    configuration["blocksize"] = blocksize
    if shuffle != "noshuffle":
        configuration["typesize"] = typesize
    return {"name": "blosc", "configuration": configuration}


def sharding(
    chunk_shape: Sequence[int],
    codecs: Sequence[Json],
    *,
    location: str = "end",
    index_codecs: Sequence[Json] = (array_bytes(), CRC32C),
) -> Json:
    more = {"index_codecs": list(index_codecs), "index_location": location}
    return documents.sharding(list(chunk_shape), codecs=list(codecs), **more)


def chunk_keys(name: str, separator: str) -> Json:
    return {"name": name, "configuration": {"separator": separator}}


def array_document(
    *,
    shape: Sequence[int],
    data_type: str,
    chunk_shape: Sequence[int],
    keys: Json,
    fill_value: Any,
    codecs: Sequence[Json],
) -> Json:
    members = {
        "data_type": data_type,
        "chunk_key_encoding": keys,
        "fill_value": fill_value,
        "codecs": list(codecs),
        "attributes": {},
    }
    return json.loads(documents.array_document(shape, chunk_shape, **members))
