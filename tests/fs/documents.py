"""Metadata documents written by hand, for what zarr-python would not write."""

import json
from typing import Any

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
CRC32C = {"name": "crc32c"}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def array_document(shape: tuple[int, ...], chunks: tuple[int, ...], **members: Any) -> bytes:
    """A v3 array of int16, uncompressed and filled with 7, with some members replaced."""
    return json.dumps(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 7,
            "codecs": [LITTLE],
            **members,
        }
    ).encode()


def group_document(**members: Any) -> bytes:
    return json.dumps({"zarr_format": 3, "node_type": "group", **members}).encode()


def sharding(chunks: tuple[int, ...], **members: Any) -> dict[str, Any]:
    """The codec ``sharding_indexed`` of uncompressed inner chunks."""
    configuration = {
        "chunk_shape": chunks,
        "codecs": [LITTLE],
        "index_codecs": [LITTLE, CRC32C],
        "index_location": "end",
        **members,
    }
    return {"name": "sharding_indexed", "configuration": configuration}
