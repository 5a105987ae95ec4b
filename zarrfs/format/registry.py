"""Every codec, data type and chunk grid by name, in one place.

Codecs are named by where their class is, so that only those that an array uses
are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

from zarrfs.format.data_type import DataType
from zarrfs.format.data_types import CORE_DATA_TYPES, raw_bits

CodecKind = Literal["array -> array", "array -> bytes", "bytes -> bytes"]

CODECS: dict[str, tuple[CodecKind, str]] = {
    "transpose": ("array -> array", "zarrfs.format.codecs.transpose:TransposeCodec"),
    "bytes": ("array -> bytes", "zarrfs.format.codecs.bytes:BytesCodec"),
    "sharding_indexed": ("array -> bytes", "zarrfs.format.codecs.sharding:ShardingCodec"),
    "blosc": ("bytes -> bytes", "zarrfs.format.codecs.blosc:BloscCodec"),
    "crc32c": ("bytes -> bytes", "zarrfs.format.codecs.crc32c:Crc32cCodec"),
    "gzip": ("bytes -> bytes", "zarrfs.format.codecs.gzip:GzipCodec"),
    "zstd": ("bytes -> bytes", "zarrfs.format.codecs.zstd:ZstdCodec"),
}
"""Kind and class of each codec; the class is called with the configuration's members."""


def find_codec(name: str) -> tuple[CodecKind, Callable[..., Any]] | None:
    """Kind and class of the codec ``name``; None if there is none."""
    if (entry := CODECS.get(name)) is None:
        return None
    kind, path = entry
    module, _, attribute = path.partition(":")
    return kind, getattr(import_module(module), attribute)


def find_data_type(name: str) -> DataType | None:
    """The data type ``name``; None if there is none."""
    return CORE_DATA_TYPES.get(name) or raw_bits(name)
