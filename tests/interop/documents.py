"""Parts of ``zarr.json`` documents, as the specification writes them."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

CRC32C: Json = {"name": "crc32c"}


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
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": list(chunk_shape),
            "codecs": list(codecs),
            "index_codecs": list(index_codecs),
            "index_location": location,
        },
    }


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
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
        "chunk_key_encoding": keys,
        "fill_value": fill_value,
        "codecs": list(codecs),
        "attributes": {},
    }
