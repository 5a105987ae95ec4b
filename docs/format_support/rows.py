"""Every row of the support table, with samples of it; names come from zarrfs's registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zarrfs.format.chunk_grid import CHUNK_GRIDS
from zarrfs.format.chunk_layout import CHUNK_KEY_ENCODINGS
from zarrfs.format.codecs.objects import OBJECT_CODECS
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.metadata.older.v2_codecs import BUFFER_FILTERS, STRINGS
from zarrfs.format.registry import CODECS, DATA_TYPES, NUMCODECS

from .samples import LITTLE, Json, Sample, v1, v2, v3

Rows = dict[str, Sequence[Sample]]
"""By name. A reader has the row if it reads one of the samples."""

_CONFIGURATIONS: Mapping[str, Json] = {
    "numpy.datetime64": {"unit": "ms", "scale_factor": 10},
    "numpy.timedelta64": {"unit": "s", "scale_factor": 1},
    "fixed_length_utf32": {"length_bytes": 8},
    "null_terminated_bytes": {"length_bytes": 4},
    "raw_bytes": {"length_bytes": 3},
    "struct": {
        "fields": [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float32"}]
    },
    "structured": {"fields": [["a", "int16"], ["b", "float32"]]},
}
_FILLS: Mapping[str, Sequence[Any]] = {
    "bool": [False],
    # It has no zero.
    "float8_e8m0fnu": [1.0, "0x7f"],
    "complex_float8_e8m0fnu": [[1.0, 1.0], ["0x7f", "0x7f"]],
    "fixed_length_utf32": [""],
    "null_terminated_bytes": ["", "AAAAAA==", []],
    "raw_bytes": ["AAAA"],
    "struct": [{"a": 0, "b": 0.0}],
    "structured": ["AAAAAAAA"],
    "string": [""],
    "bytes": ["", []],
    "variable_length_bytes": ["", []],
    "r24": [[0, 0, 0], "AAAA"],
}
_SERIALISERS: Mapping[str, str] = {
    "string": "vlen-utf8",
    "bytes": "vlen-bytes",
    "variable_length_bytes": "vlen-bytes",
}


def data_types() -> Rows:
    rows = {name: _of_type(name) for name in [*CORE_DATA_TYPES, *DATA_TYPES]}
    # Matched by a pattern.
    rows["r<N>, N a multiple of 8"] = _of_type("r24")
    return rows


def _of_type(name: str) -> list[Sample]:
    data_type: Any = name
    if name in _CONFIGURATIONS:
        data_type = {"name": name, "configuration": _CONFIGURATIONS[name]}
    default: list[Any] = [0]
    if name.startswith("complex"):
        default = [[0.0, 0.0]]
        if any(few in name for few in ("float4_", "float6_", "float8_")):
            default.append(["0x00", "0x00"])
    serialiser = _SERIALISERS.get(name)
    codecs = [{"name": serialiser}] if serialiser else [LITTLE]
    return [
        Sample(3, v3(data_type, fill_value=fill, codecs=codecs))
        for fill in _FILLS.get(name, default)
    ]


_SHARDS: Json = {
    "chunk_shape": [2, 3],
    "codecs": [LITTLE],
    "index_codecs": [LITTLE, {"name": "crc32c"}],
    "index_location": "end",
}
_BLOSC: Json = {
    "cname": "lz4",
    "clevel": 5,
    "shuffle": "shuffle",
    "typesize": 4,
    "blocksize": 0,
}
_CODECS: Mapping[str, tuple[str, Json]] = {
    "bitround": ("float32", {"keepbits": 10}),
    "cast_value": ("int16", {"data_type": "int32"}),
    "reshape": ("float32", {"shape": [[0, 1]]}),
    "scale_offset": ("float64", {"offset": 3, "scale": 2}),
    "transpose": ("float32", {"order": [1, 0]}),
    "bytes": ("int32", {"endian": "big"}),
    "packbits": ("bool", {"padding_encoding": "first_byte"}),
    "pcodec": ("int32", {}),
    "sharding_indexed": ("int32", _SHARDS),
    "vlen-bytes": ("bytes", {}),
    "vlen-utf8": ("string", {}),
    "zfp": ("float32", {"mode": "reversible"}),
    "blosc": ("int32", _BLOSC),
    "gzip": ("int32", {"level": 1}),
    "zstd": ("int32", {"level": 1, "checksum": True}),
}
"""Type of the elements and configuration, where not all of them are the common ones."""

_NUMCODECS: Mapping[str, tuple[str, Json]] = {
    "astype": ("<f8", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
    "bitround": ("<f4", {"keepbits": 10}),
    "delta": ("<i4", {"dtype": "<i4"}),
    "fixedscaleoffset": ("<f8", {"offset": 5, "scale": 10, "dtype": "<f8", "astype": "<i2"}),
    "packbits": ("|b1", {}),
    "quantize": ("<f4", {"digits": 2, "dtype": "<f4"}),
    "pcodec": ("<i4", {"level": 8, "mode_spec": "auto"}),
    "zfpy": ("<f4", {"mode": 4, "tolerance": 0.0}),
    "blosc": ("<i4", {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
    "bz2": ("<i4", {"level": 1}),
    "categorize": ("|O", {"labels": ["a", "", "Käse", "b"], "dtype": "|O", "astype": "|u1"}),
    "gzip": ("<i4", {"level": 1}),
    "jenkins_lookup3": ("<i4", {"initval": 0, "prefix": None}),
    "json": ("|O", {}),
    "msgpack": ("|O", {}),
    "json2": ("|O", {"encoding": "utf-8", "ensure_ascii": True, "strict": True}),
    "msgpack2": ("|O", {"use_bin_type": True, "raw": False, "use_single_float": False}),
    "lz4": ("<i4", {"acceleration": 1}),
    "lzma": ("<i4", {"format": 1, "check": -1, "preset": 1, "filters": None}),
    "shuffle": ("<i4", {"elementsize": 4}),
    "vlen-bytes": ("|O", {}),
    "vlen-utf8": ("|O", {}),
    "zlib": ("<i4", {"level": 1}),
    "zstd": ("<i4", {"level": 1}),
}
_NAMES = {"<f8": "float64", "<f4": "float32", "<i4": "int32", "|b1": "bool"}
_COMPRESSORS = ("blosc", "bz2", "gzip", "lz4", "lzma", "pcodec", "zfpy", "zlib", "zstd")


def codecs() -> Rows:
    return {name: [_with_codec(name, kind)] for name, (kind, _) in CODECS.items()}


def _with_codec(name: str, kind: str) -> Sample:
    if (numcodec := name.removeprefix("numcodecs.")) != name:
        dtype, configuration = _NUMCODECS.get(numcodec, ("<i4", {}))
        data_type = _NAMES[dtype]
        if numcodec == "blosc":
            configuration = {**configuration, "typesize": 4}
    else:
        data_type, configuration = _CODECS.get(name, ("int32", {}))
    codec: Json = {"name": name}
    if configuration or name.startswith("numcodecs."):
        codec["configuration"] = configuration
    chain = {
        "array -> array": [codec, LITTLE],
        "array -> bytes": [codec],
        "bytes -> bytes": [LITTLE, codec],
    }[kind]
    members: Json = {"codecs": chain, "fill_value": _FILLS.get(data_type, [0])[0]}
    if "squeeze" in name:
        grid = {"name": "regular", "configuration": {"chunk_shape": [1, 3]}}
        members |= {"shape": [1, 3], "chunk_grid": grid}
    return Sample(3, v3(data_type, **members))


def filters_of_v2() -> Rows:
    return {name: _of_v2(name) for name in [*NUMCODECS, *BUFFER_FILTERS, *STRINGS, *OBJECT_CODECS]}


def _of_v2(name: str) -> list[Sample]:
    if name == "vlen-array":
        # Its elements are arrays, which zarrfs shows as JSON lists.
        document = _document_v2("vlen-array", "|O", {"dtype": "<i4"})
        return [Sample(2, document, values=([], [0], [1, 2]))]
    dtype, configuration = _NUMCODECS.get(name, ("<i4", {}))
    return [Sample(2, _document_v2(name, dtype, configuration))]


def _document_v2(name: str, dtype: str, configuration: Json) -> Json:
    codec = {"id": name, **configuration}
    if name in _COMPRESSORS:
        return v2(dtype, compressor=codec)
    return v2(dtype, filters=[codec], fill_value=None if dtype == "|O" else 0)


def types_of_v2() -> Rows:
    """The rows are the kinds of dtype; both byte orders are in one."""
    pair = [["a", "<i2"], ["b", ">f4"]]
    dtypes: Mapping[str, Any] = {
        "bool `|b1`": "|b1",
        "integers `<i2`, `|u1`, …": "<i2",
        "big-endian integers `>i2`, …": ">i2",
        "floats `<f2`, `<f4`, `<f8`": "<f4",
        "big-endian floats `>f4`, …": ">f4",
        "complex `<c8`, `<c16`": "<c8",
        "big-endian complex `>c8`, …": ">c8",
        "datetimes `<M8[ns]`, …": "<M8[10ms]",
        "time differences `<m8[ns]`, …": "<m8[s]",
        "characters `|S4`": "|S4",
        "Unicode `<U4`": "<U4",
        "big-endian Unicode `>U4`": ">U4",
        "raw bytes `|V3`": "|V3",
        "structs": pair,
        "structs with subarrays": [["a", "<i2"], ["b", "<f4", [2, 2]]],
        "structs in structs": [["a", "<i2"], ["b", pair]],
    }
    fills: Mapping[str, Sequence[Any]] = {
        "|S4": ["", "AAAAAA=="],
        "<U4": [""],
        ">U4": [""],
        "<c8": [[0.0, 0.0]],
        ">c8": [[0.0, 0.0]],
    }
    return {
        name: [Sample(2, v2(dtype, fill_value=fill)) for fill in fills.get(str(dtype), [None])]
        for name, dtype in dtypes.items()
    }


_GRIDS: Mapping[str, Json] = {
    "regular": {"chunk_shape": [2, 2]},
    "rectilinear": {"kind": "inline", "chunk_shapes": [[1, [3, 1]], 2]},
    "rectangular": {"chunk_shape": [[1, 3], 2]},
    "zarrs.regular_bounded": {"chunk_shape": [3, 2]},
}
_KEYS: Mapping[str, Json] = {
    "suffix": {"suffix": ".tiff"},
    "fanout": {"max_children": 100},
    "zarrs.default_suffix": {"suffix": ".tiff"},
}


def chunk_grids() -> Rows:
    return {
        name: [Sample(3, v3(chunk_grid={"name": name, "configuration": _GRIDS[name]}))]
        for name in CHUNK_GRIDS
    }


def chunk_key_encodings() -> Rows:
    return {
        name: [
            Sample(3, v3(chunk_key_encoding={"name": name, "configuration": _KEYS.get(name, {})}))
        ]
        for name in CHUNK_KEY_ENCODINGS
    }


def versions() -> Rows:
    zlib: Json = {"id": "zlib", "level": 1}
    return {
        "3: `zarr.json`": [Sample(3, v3())],
        "2: `.zarray`, `.zgroup`, `.zattrs`, `.zmetadata`": [Sample(2, v2(compressor=zlib))],
        "1: `meta`, `attrs`": [Sample(1, v1())],
    }
