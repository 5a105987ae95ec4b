"""All data types and codecs by name, in one place.

Except for the core data types, an entry is the place of a class or function, with its first
arguments, so that only the modules that an array uses are imported. Other names are looked up among
the entry points of installed packages (`zarrfs.format.entry_points`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Literal

from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES, raw_bits
from zarrfs.format.unserved import UnservedError, name_and_configuration

CodecKind = Literal["array -> array", "array -> bytes", "bytes -> bytes"]

_TYPES = "zarrfs.format.extension_types"
_CODECS = "zarrfs.format.codecs"
_FILTER = f"{_CODECS}.numcodecs_filters:numcodecs_filter"
_CHECKSUM = f"{_CODECS}.buffer_filter:checksum"

_SMALL_FLOATS = (
    "bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)  # fmt: skip

DATA_TYPES: dict[str, str] = {
    **dict.fromkeys(("int2", "int4", "uint2", "uint4"), f"{_TYPES}.small_numbers:integer"),
    **dict.fromkeys(_SMALL_FLOATS, f"{_TYPES}.small_numbers:float_"),
    **dict.fromkeys(
        (f"complex_{part}" for part in ("float16", "float32", "float64", *_SMALL_FLOATS)),
        f"{_TYPES}.small_numbers:complex_",
    ),
    **dict.fromkeys(("numpy.datetime64", "numpy.timedelta64"), f"{_TYPES}.fixed_size:time"),
    **dict.fromkeys(
        ("fixed_length_utf32", "null_terminated_bytes", "raw_bytes"),
        f"{_TYPES}.fixed_size:fixed_bytes",
    ),
    "struct": f"{_TYPES}.struct:struct",
    "structured": f"{_TYPES}.struct:struct",
    "string": f"{_TYPES}.variable:variable",
    "bytes": f"{_TYPES}.variable:variable",
    "variable_length_bytes": f"{_TYPES}.variable:variable",
}
"""Extension types; the function is called with the name and the configuration.

The core types are in `CORE_DATA_TYPES`; `raw_bits` matches ``r<N>``.
"""

NUMCODECS: dict[str, tuple[CodecKind, str]] = {
    "astype": ("array -> array", f"{_FILTER}:astype"),
    "bitround": ("array -> array", f"{_CODECS}.bitround:BitroundCodec"),
    "delta": ("array -> array", f"{_FILTER}:delta"),
    "fixedscaleoffset": ("array -> array", f"{_FILTER}:fixedscaleoffset"),
    "packbits": ("array -> array", f"{_FILTER}:packbits"),
    "quantize": ("array -> array", f"{_FILTER}:quantize"),
    "pcodec": ("array -> bytes", f"{_CODECS}.pcodec:PcodecCodec"),
    "zfpy": ("array -> bytes", f"{_CODECS}.zfp:zfpy"),
    "adler32": ("bytes -> bytes", f"{_CHECKSUM}:adler32"),
    "blosc": ("bytes -> bytes", f"{_CODECS}.blosc:numcodecs_blosc"),
    "bz2": ("bytes -> bytes", f"{_CODECS}.streams:Bz2Codec"),
    "crc32": ("bytes -> bytes", f"{_CHECKSUM}:crc32"),
    "crc32c": ("bytes -> bytes", f"{_CHECKSUM}:crc32c"),
    "fletcher32": ("bytes -> bytes", f"{_CHECKSUM}:fletcher32"),
    "gzip": ("bytes -> bytes", f"{_CODECS}.gzip:DeflateCodec:gzip"),
    "jenkins_lookup3": ("bytes -> bytes", f"{_CHECKSUM}:jenkins_lookup3"),
    "lz4": ("bytes -> bytes", f"{_CODECS}.lz4:Lz4Codec"),
    "lzma": ("bytes -> bytes", f"{_CODECS}.streams:lzma_codec"),
    "shuffle": ("bytes -> bytes", f"{_CODECS}.buffer_filter:shuffle"),
    "zlib": ("bytes -> bytes", f"{_CODECS}.gzip:DeflateCodec:zlib"),
    "zstd": ("bytes -> bytes", f"{_CODECS}.zstd:numcodecs_zstd"),
}
"""The codecs of numcodecs by their id in v2 metadata, with the configuration of numcodecs."""

CODECS: dict[str, tuple[CodecKind, str]] = {
    "bitround": ("array -> array", f"{_CODECS}.bitround:BitroundCodec"),
    "cast_value": ("array -> array", f"{_CODECS}.cast_value:cast_value"),
    "reshape": ("array -> array", f"{_CODECS}.reshape:ReshapeCodec"),
    "scale_offset": ("array -> array", f"{_CODECS}.scale_offset:ScaleOffsetCodec"),
    "squeeze": ("array -> array", f"{_CODECS}.reshape:SqueezeCodec"),
    "zarrs.squeeze": ("array -> array", f"{_CODECS}.reshape:SqueezeCodec"),
    "transpose": ("array -> array", f"{_CODECS}.transpose:TransposeCodec"),
    "bytes": ("array -> bytes", f"{_CODECS}.bytes:BytesCodec"),
    "packbits": ("array -> bytes", f"{_CODECS}.packbits:PackbitsCodec"),
    "pcodec": ("array -> bytes", f"{_CODECS}.pcodec:PcodecCodec"),
    "sharding_indexed": ("array -> bytes", f"{_CODECS}.sharding:ShardingCodec"),
    "vlen-bytes": ("array -> bytes", f"{_CODECS}.vlen:VlenCodec:bytes"),
    "vlen-utf8": ("array -> bytes", f"{_CODECS}.vlen:VlenCodec:string"),
    "zfp": ("array -> bytes", f"{_CODECS}.zfp:zfp"),
    "blosc": ("bytes -> bytes", f"{_CODECS}.blosc:BloscCodec"),
    "crc32c": ("bytes -> bytes", f"{_CODECS}.crc32c:Crc32cCodec"),
    "gzip": ("bytes -> bytes", f"{_CODECS}.gzip:DeflateCodec:gzip"),
    "zstd": ("bytes -> bytes", f"{_CODECS}.zstd:ZstdCodec"),
    **{f"numcodecs.{name}": entry for name, entry in NUMCODECS.items()},
}
"""Kind and class of each codec of v3; the class is called with the configuration's members."""

REFUSED_CODECS: dict[str, str] = {
    "endian": "is of a draft from before the specification was final, which has bytes instead",
    "numcodecs.pickle": "would run code that the data brings along",
    "pickle": "would run code that the data brings along",
    "optional": "gives elements that may be missing, which have no flat view",
    "zarrs.gdeflate": "has no decoder for Python",
}
"""Codecs that zarrfs knows and does not serve, with the reason."""

_CONFIGURABLE = frozenset(
    ("numpy.datetime64", "numpy.timedelta64", "fixed_length_utf32", "null_terminated_bytes",
     "raw_bytes", "struct", "structured")
)  # fmt: skip


def find_codec(name: str) -> tuple[CodecKind, Callable[..., Any]] | None:
    """Kind and class of the codec ``name``; None if there is none.

    Raises UnservedError for a codec that zarrfs knows and refuses.
    """
    found: tuple[CodecKind, Callable[..., Any]] | None = _find(name, CODECS)
    return _entry_points().find_codec(name) if found is None else found


def find_numcodecs_codec(codec_id: str) -> tuple[CodecKind, Callable[..., Any]] | None:
    """Kind and class of the codec that numcodecs calls ``codec_id``; None if there is none."""
    return _find(codec_id, NUMCODECS)


def _find(
    name: str, codecs: Mapping[str, tuple[CodecKind, str]]
) -> tuple[CodecKind, Callable[..., Any]] | None:
    if (reason := REFUSED_CODECS.get(name)) is not None:
        raise UnservedError(f"codec {name!r} {reason}")
    if (entry := codecs.get(name)) is None:
        return None
    kind, path = entry
    return kind, _load(path)


def find_data_type(name: str, configuration: Mapping[str, Any] | None = None) -> DataType | None:
    """The data type ``name``; None if there is none.

    Raises ValueError for a configuration that it does not accept.
    """
    configuration = configuration or {}
    known = CORE_DATA_TYPES.get(name) or raw_bits(name)
    if configuration and (known is not None or name in DATA_TYPES.keys() - _CONFIGURABLE):
        raise ValueError(f"data type {name!r} takes no configuration")
    if known is not None:
        return known
    if (path := DATA_TYPES.get(name)) is not None:
        return _load(path)(name, configuration)  # type: ignore[no-any-return]
    found: DataType | None = _entry_points().find_data_type(name, configuration)
    return found


def parse_data_type(value: Any) -> DataType:
    """The data type that v3 metadata give as ``value``: a name, or a name and a configuration.

    Raises UnservedError for an unknown type, ValueError for a malformed one.
    """
    name, configuration = name_and_configuration(value, "data type")
    if (data_type := find_data_type(name, configuration)) is None:
        raise UnservedError(f"unknown data type {name!r}")
    return data_type


def _load(path: str) -> Callable[..., Any]:
    module, attribute, *arguments = path.split(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return partial(found, *arguments) if arguments else found


def _entry_points() -> Any:
    # Known names need not wait for the metadata of all installed packages to be read.
    return import_module("zarrfs.format.entry_points")
