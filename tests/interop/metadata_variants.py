"""Documents that say one thing in many ways: what other writers and people by hand make of it.

Every variant has a document with no deviation beside it, by which chunks are made. Whether it
says the same, or anything at all, is for the implementations that read it to say.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from docs.format_support.samples import LITTLE, Json, v2, v3

_GRID: Json = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}


class Variant(NamedTuple):
    """``text`` is a document; ``strict`` is the one that its chunks are made by."""

    name: str
    version: int
    text: str
    strict: Json


_ABSENT: Any = object()

# In numbers and strings, as JSON has them and as it has not.
_FILLS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 300, 0.0, 1.0, 1.5, -0.0, 1e3, -1.5, True, False, None, _ABSENT,
    "0", "1", "-1", "7", "1.5", "0.0", "1.0", "1e3", "-0.0", "+1", " 1", "", "abc",
    "nan", "NaN", "-NaN", "NAN", "inf", "-inf", "+inf", "Inf", "Infinity", "-Infinity", "+Infinity",
    "infinity", "true", "false", "True", "False", "NaT", "0x0", "0x1", "0x01", "0x00000001",
    "0x7fc00000", "0X7FC00000", "0x7ff8000000000000", "0x3f80", "AA==", "AAAAAAAAAAA=",
    float("nan"), float("inf"), float("-inf"),
    [], [0], [1], [0, 0], [0.0, 0.0], [1, 2], [1.5, -2], ["0", "1"], ["1.5", "nan"], ["NaN", 0],
    ["nan", "inf"], ["0x7fc00000", "0x00000000"], [0, 0, 0], [1, 0, 0, 0], {}, "(1+2j)",
)  # fmt: skip

_TYPES_V3: dict[str, tuple[Any, Any]] = {
    "bool": ("bool", False),
    "int8": ("int8", 0),
    "uint8": ("uint8", 0),
    "int16": ("int16", 0),
    "int32": ("int32", 0),
    "uint64": ("uint64", 0),
    "float16": ("float16", 0),
    "float32": ("float32", 0),
    "float64": ("float64", 0),
    "bfloat16": ("bfloat16", 0),
    "complex64": ("complex64", [0, 0]),
    "complex128": ("complex128", [0, 0]),
    "int4": ("int4", 0),
    "r16": ("r16", [0, 0]),
    "datetime64": (
        {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}},
        0,
    ),
}
_TYPES_V2 = (
    "|b1", "|i1", "|u1", "<i2", ">i4", "<u8", "<f2", "<f4", ">f8", "<c8", ">c16", "<M8[s]",
    "<m8[ms]", "|S2", "<U1", "|V2",
)  # fmt: skip


def _variants() -> list[Variant]:
    """All of them; each name is once there."""
    found = [*_v3_fills(), *_v2_fills(), *_v3_members(), *_v2_members()]
    assert len({variant.name for variant in found}) == len(found)
    return found


def _with(document: Json, member: str, value: Any) -> str:
    if value is _ABSENT:
        return json.dumps({name: item for name, item in document.items() if name != member})
    return json.dumps({**document, member: value})


def _say(value: Any) -> str:
    return "absent" if value is _ABSENT else json.dumps(value)


def _v3_fills() -> Iterator[Variant]:
    for name, (data_type, fill) in _TYPES_V3.items():
        strict = v3(data_type, fill_value=fill, chunk_grid=_GRID)
        for value in _FILLS:
            text = _with(strict, "fill_value", value)
            yield Variant(f"v3 {name} fill_value {_say(value)}", 3, text, strict)


def _v2_fills() -> Iterator[Variant]:
    for dtype in _TYPES_V2:
        strict = v2(dtype, chunks=[2, 3], fill_value=None)
        for value in _FILLS:
            text = _with(strict, "fill_value", value)
            yield Variant(f"v2 {dtype} fill_value {_say(value)}", 2, text, strict)


def _v3_members() -> Iterator[Variant]:
    plain = v3(chunk_grid=_GRID)
    for member, values in _V3_MEMBERS.items():
        for value in values:
            text = _with(plain, member, value)
            yield Variant(f"v3 {member} {_say(value)}", 3, text, plain)
    bytes_ = v3("int8", chunk_grid=_GRID, codecs=[{"name": "bytes"}])
    for codecs in _BYTES_OF_INT8:
        text = _with(bytes_, "codecs", codecs)
        yield Variant(f"v3 int8 codecs {_say(codecs)}", 3, text, bytes_)
    for strict_codecs, others in _V3_CODECS:
        strict = v3("int32", chunk_grid=_GRID, codecs=strict_codecs)
        for codecs in others:
            yield Variant(f"v3 codecs {_say(codecs)}", 3, _with(strict, "codecs", codecs), strict)
    for name, configuration in _NUMCODECS.items():
        kind, strict_configuration, codec = configuration
        chain = [codec, LITTLE] if kind == "array" else [LITTLE, codec]
        strict_codec = {"name": f"numcodecs.{name}", "configuration": strict_configuration}
        strict_chain = [strict_codec, LITTLE] if kind == "array" else [LITTLE, strict_codec]
        strict = v3("int32", chunk_grid=_GRID, codecs=strict_chain)
        for shape in ("id", "prefixed id", "bare"):
            added = {"id": {"id": name}, "prefixed id": {"id": f"numcodecs.{name}"}}.get(shape, {})
            whole = {**codec, "configuration": {**strict_configuration, **added}}
            codecs = [whole if item is codec else item for item in chain]
            text = _with(strict, "codecs", codecs)
            yield Variant(f"v3 numcodecs.{name} with {shape}", 3, text, strict)
        if not strict_configuration:
            continue
        for left_out in strict_configuration:
            left = {k: v for k, v in strict_configuration.items() if k != left_out}
            whole = {**codec, "configuration": left}
            codecs = [whole if item is codec else item for item in chain]
            text = _with(strict, "codecs", codecs)
            yield Variant(f"v3 numcodecs.{name} without {left_out}", 3, text, strict)


def _v2_members() -> Iterator[Variant]:
    plain = v2(chunks=[2, 3])
    for member, values in _V2_MEMBERS.items():
        for value in values:
            text = _with(plain, member, value)
            yield Variant(f"v2 {member} {_say(value)}", 2, text, plain)
    for dtype, others in _V2_DTYPES.items():
        strict = v2(dtype, chunks=[2, 3], fill_value=None)
        for other in others:
            text = _with(strict, "dtype", other)
            yield Variant(f"v2 dtype {_say(other)} for {dtype}", 2, text, strict)
    for codec, others in _V2_COMPRESSORS:
        strict = v2(chunks=[2, 3], compressor=codec)
        for other in others:
            text = _with(strict, "compressor", other)
            yield Variant(f"v2 compressor {_say(other)}", 2, text, strict)
    for codec, others in _V2_FILTERS:
        strict = v2(chunks=[2, 3], filters=[codec])
        for other in others:
            text = _with(strict, "filters", other)
            yield Variant(f"v2 filters {_say(other)}", 2, text, strict)


_V3_MEMBERS: dict[str, tuple[Any, ...]] = {
    "zarr_format": (3, 3.0, "3", None, True, _ABSENT),
    "node_type": ("Array", None, _ABSENT, "arrays"),
    "shape": ([4.0, 3.0], [4.0, 3], ["4", "3"], [4, 3, 1], [-4, 3], {"0": 4}),
    "data_type": (
        {"name": "int32"}, {"name": "int32", "configuration": {}},
        {"name": "int32", "configuration": None}, {"name": "int32", "must_understand": True},
        {"name": "int32", "must_understand": False}, {"name": "int32", "other": 1},
        {"name": "int32", "configuration": {"a": 1}}, "Int32", "<i4", "int", ["int32"], "int32 ",
    ),
    "chunk_grid": (
        {"name": "regular", "configuration": {"chunk_shape": [2.0, 3.0]}},
        {"name": "regular", "configuration": {"chunk_shape": [2, 3], "other": 1}},
        {"name": "regular", "configuration": {"chunk_shape": [2, 3]}, "must_understand": True},
        {"name": "regular", "configuration": {"chunk_shape": [2, 3]}, "must_understand": False},
        {"name": "regular", "configuration": {"chunk_shape": [2, 3]}, "other": 1},
        {"name": "regular", "configuration": {"chunk_shape": ["2", "3"]}},
        {"name": "regular", "configuration": {"chunk_shape": 2}},
        {"name": "regular", "chunk_shape": [2, 3]}, "regular", [2, 3],
        {"type": "regular", "chunk_shape": [2, 3], "separator": "/"},
    ),
    "chunk_key_encoding": (
        "default", {"name": "default"}, {"name": "default", "configuration": {}},
        {"name": "default", "configuration": None}, {"name": "default", "separator": "/"},
        {"name": "default", "configuration": {"separator": None}},
        {"name": "default", "configuration": {"separator": "/", "other": 1}},
        {"name": "default", "configuration": {"separator": "/"}, "must_understand": True},
        {"name": "default", "configuration": {"separator": "/"}, "must_understand": False},
        {"name": "default", "configuration": {"separator": "/"}, "other": 1},
        {"name": "Default"}, None, _ABSENT,
    ),
    "dimension_names": (
        None, [None, None], ["a", None], ["a", "b"], ["a", "a"], ["", ""], ["a"], [], "ab",
        [1, 2], ["a", "b", "c"], _ABSENT,
    ),
    "attributes": (None, [], "a", {"a": None}, {"a": float("nan")}, {"": {}}, _ABSENT),
    "storage_transformers": (None, [], {}, [{"name": "novelty"}], "none", _ABSENT),
    "consolidated_metadata": (None, {}, {"must_understand": False}),
    "novelty": (
        None, {}, {"must_understand": False}, {"must_understand": True}, 1, False,
        {"name": "novelty", "must_understand": False}, {"must_understand": "false"},
    ),
    "must_understand": (True, False),
    "extensions": ([], None),
    "chunk_memory_layout": ("C",),
    "fill_value": (_ABSENT,),
}  # fmt: skip

_GZIP: Json = {"name": "gzip", "configuration": {"level": 1}}
_ZSTD: Json = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
_BLOSC: Json = {
    "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0
}  # fmt: skip
_SHARDS: Json = {
    "chunk_shape": [1, 3],
    "codecs": [LITTLE],
    "index_codecs": [LITTLE, {"name": "crc32c"}],
    "index_location": "end",
}
_TRANSPOSE: Json = {"name": "transpose", "configuration": {"order": [1, 0]}}


def _configured(name: str, *configurations: Any) -> list[Json]:
    return [
        {"name": name} if c is _ABSENT else {"name": name, "configuration": c}
        for c in configurations
    ]


def _changed(whole: Json, **changes: Any) -> list[Json]:
    """One configuration for each changed value, and one without each member."""
    found = [{k: v for k, v in whole.items() if k != name} for name in whole]
    for name, values in changes.items():
        found += [{**whole, name: value} for value in values]
    return [*found, {**whole, "other": 1}]


_BYTES_OF_INT8 = (
    ["bytes"], [{"name": "bytes", "configuration": {}}],
    [{"name": "bytes", "configuration": None}],
    [{"name": "bytes", "configuration": {"endian": None}}],
    [{"name": "bytes", "configuration": {"endian": "little"}}],
    [{"name": "bytes", "configuration": {"endian": "big"}}],
    [{"name": "bytes", "must_understand": True}], [{"name": "bytes", "other": 1}], [], None,
)  # fmt: skip

_V3_CODECS: list[tuple[list[Any], list[Any]]] = [
    ([LITTLE], [[c] for c in _configured("bytes", _ABSENT, None, {}, {"endian": None},
     {"endian": "Little"}, {"endian": "LITTLE"}, {"endian": "<"}, {"endian": "native"},
     {"endian": "little", "other": 1})] + [["bytes"], [{**LITTLE, "must_understand": True}],
     [{**LITTLE, "must_understand": False}], [{**LITTLE, "other": 1}], [{"name": "endian",
     "configuration": {"endian": "little"}}], [], LITTLE, [[LITTLE]], [LITTLE, None], [LITTLE,
     {"name": "novelty", "must_understand": False}], [LITTLE, {"name": "novelty",
     "configuration": {}, "must_understand": False}], [{"name": "identity"}, LITTLE], [{"name":
     "null"}, LITTLE], [{"id": "bytes", "endian": "little"}], [{"name": "bytes", "endian":
     "little"}]]),
    ([LITTLE, _GZIP], [[LITTLE, c] for c in _configured("gzip", _ABSENT, None, {}, {"level":
     None}, {"level": 1.0}, {"level": -1}, {"level": 10}, {"level": "1"}, {"level": True},
     {"level": 0}, {"level": 1, "other": 1}, {"level": 1, "id": "gzip"})] + [[LITTLE, "gzip"],
     ["bytes", "gzip"]]),
    ([LITTLE, _ZSTD], [[LITTLE, c] for c in _configured("zstd", _ABSENT, None, {}, {"level": 1},
     {"checksum": False}, {"level": None}, {"level": 1.0, "checksum": False}, {"level": 1,
     "checksum": None}, {"level": 1, "checksum": 0}, {"level": 99, "checksum": False}, {"level":
     -5, "checksum": True}, {"level": 1, "checksum": False, "other": 1})] + [[LITTLE, "zstd"]]),
    ([LITTLE, {"name": "crc32c"}], [[LITTLE, c] for c in _configured("crc32c", None, {},
     {"other": 1}, {"location": "end"})] + [[LITTLE, "crc32c"], [LITTLE, {"name": "crc32c",
     "must_understand": True}]]),
    ([LITTLE, {"name": "blosc", "configuration": _BLOSC}], [[LITTLE, c] for c in
     _configured("blosc", _ABSENT, None, {}, *_changed(_BLOSC, cname=("LZ4", "zstd", None,
     "novelty"), clevel=(5.0, "5", None, 10, -1, 0), shuffle=(0, 1, 2, -1, None, "noshuffle",
     "bitshuffle", "Shuffle", "none"), typesize=(None, 0, 4.0, 1, 256, "4", -1),
     blocksize=(None, 0.0, -1, 64, "0"), nthreads=(1,), id=("blosc",)))]),
    ([_TRANSPOSE, LITTLE], [[c, LITTLE] for c in _configured("transpose", {"order": "F"},
     {"order": [1.0, 0.0]}, {"order": [-1, 0]}, {"order": ["1", "0"]}, {"order": [1, 0],
     "other": 1}, {"order": None}, {})]),
    ([{"name": "transpose", "configuration": {"order": [0, 1]}}, LITTLE], [[c, LITTLE] for c in
     _configured("transpose", {"order": "C"}, {"order": []})]),
    ([{"name": "sharding_indexed", "configuration": _SHARDS}], [[c] for c in
     _configured("sharding_indexed", *_changed(_SHARDS, chunk_shape=([1.0, 3.0], ["1", "3"], [2,
     3], [1]), codecs=(["bytes"], [{"name": "bytes"}], None, []), index_codecs=(["bytes",
     "crc32c"], [{"name": "bytes"}, {"name": "crc32c"}], [LITTLE, "crc32c"], None, []),
     index_location=(None, "End", "END")))]),
]  # fmt: skip

_NUMCODECS: dict[str, tuple[str, Json, Json]] = {
    name: (kind, configuration, {"name": f"numcodecs.{name}"})
    for name, (kind, configuration) in {
        "adler32": ("bytes", {}),
        "astype": ("array", {"encode_dtype": "<i8", "decode_dtype": "<i4"}),
        "blosc": ("bytes", {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        "bz2": ("bytes", {"level": 1}),
        "crc32": ("bytes", {}),
        "crc32c": ("bytes", {}),
        "delta": ("array", {"dtype": "<i4", "astype": "<i4"}),
        "fixedscaleoffset": (
            "array", {"offset": 0, "scale": 1, "dtype": "<i4", "astype": "<i4"}
        ),
        "fletcher32": ("bytes", {}),
        "gzip": ("bytes", {"level": 1}),
        "jenkins_lookup3": ("bytes", {"initval": 0, "prefix": None}),
        "lz4": ("bytes", {"acceleration": 1}),
        "lzma": ("bytes", {"format": 1, "check": -1, "preset": None, "filters": None}),
        "shuffle": ("bytes", {"elementsize": 4}),
        "zlib": ("bytes", {"level": 1}),
        "zstd": ("bytes", {"level": 1, "checksum": False}),
    }.items()
}  # fmt: skip

_V2_MEMBERS: dict[str, tuple[Any, ...]] = {
    "zarr_format": (2, 2.0, "2", None, True, _ABSENT),
    "shape": ([4.0, 3.0], [4.0, 3], ["4", "3"], {"0": 4}, None),
    "chunks": ([2.0, 3.0], ["2", "3"], 2, True, None, [2], [2, None], [2, -1]),
    "order": ("c", None, "A", _ABSENT, "F "),
    "dimension_separator": (".", None, "", _ABSENT, 0),
    "filters": ([], {}, [None], "none", _ABSENT, False),
    "compressor": ({}, [], "none", _ABSENT, False, {"id": None}, {"id": "none"}, ""),
    "novelty": (None, 1, {}),
    "attributes": ({}, None),
    "fill_value": (_ABSENT,),
    "node_type": ("array",),
    "dimensions": (["a", "b"],),
    "dataset": ("a",),
}

_V2_DTYPES: dict[str, tuple[Any, ...]] = {
    "<i4": ("=i4", "i4", "|i4", "int32", "int", "<i", "i", " <i4", "<I4", ["<i4"], "<i04", None),
    "|i1": ("<i1", ">i1", "i1", "=i1", "int8", "b", "|b"),
    "|u1": ("<u1", ">u1", "u1", "=u1", "uint8", "B"),
    "|b1": ("<b1", ">b1", "b1", "?", "|?", "bool", "<?"),
    "<f4": ("=f4", "f4", "float32", "f", "<f", "float", "single"),
    "<f8": ("=f8", "f8", "float64", "d", "double"),
    "<c8": ("=c8", "c8", "complex64", "F"),
    "<M8[s]": ("M8[s]", "=M8[s]", "datetime64[s]", "<M8[1s]", "<M8[2s]"),
    "|S2": ("S2", "<S2", "a2", "|a2"),
    "<U1": ("U1", "=U1", "|U1", "<U"),
    "|V2": ("V2", "<V2", "|V"),
}

_V2_BLOSC: Json = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
_V2_COMPRESSORS: list[tuple[Json, list[Any]]] = [
    (
        {"id": "zlib", "level": 1},
        [
            {"id": "zlib"}, {"id": "zlib", "level": None}, {"id": "zlib", "level": 1.0},
            {"id": "zlib", "level": "1"}, {"id": "zlib", "level": 99}, {"id": "zlib", "level": -1},
            {"id": "zlib", "level": 1, "other": 1}, {"id": "ZLIB", "level": 1}, "zlib",
            [{"id": "zlib", "level": 1}], {"name": "zlib", "level": 1},
            {"id": "zlib", "configuration": {"level": 1}}, {"id": "numcodecs.zlib", "level": 1},
        ],
    ),
    (
        {"id": "gzip", "level": 1},
        [{"id": "gzip"}, {"id": "gzip", "level": None}, {"id": "gzip", "level": 1.0}],
    ),
    ({"id": "bz2", "level": 1}, [{"id": "bz2"}, {"id": "bz2", "level": 1.0}]),
    (
        {"id": "zstd", "level": 1},
        [
            {"id": "zstd"}, {"id": "zstd", "level": 1, "checksum": False},
            {"id": "zstd", "level": 1, "checksum": True}, {"id": "zstd", "level": None},
            {"id": "zstd", "level": 1, "checksum": None}, {"id": "zstd", "level": 1.0},
            {"id": "zstd", "level": 1, "other": 1},
        ],
    ),
    (
        _V2_BLOSC,
        _changed(
            _V2_BLOSC,
            cname=("LZ4", "zstd", None),
            clevel=(5.0, "5", None, 10),
            shuffle=(0, -1, 2, 3, None, True, "shuffle", "noshuffle"),
            blocksize=(None, 0.0, -1),
            typesize=(4, None, 0, 1),
            nthreads=(1,),
        )[1:],
    ),
    (
        {"id": "lz4", "acceleration": 1},
        [{"id": "lz4"}, {"id": "lz4", "acceleration": None}, {"id": "lz4", "acceleration": 0}],
    ),
    (
        {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
        [{"id": "lzma"}, {"id": "lzma", "preset": 1}, {"id": "lzma", "format": 1.0}],
    ),
]  # fmt: skip
_V2_FILTERS: list[tuple[Json, list[Any]]] = [
    (
        {"id": "delta", "dtype": "<i4", "astype": "<i4"},
        [
            [{"id": "delta", "dtype": "<i4"}], {"id": "delta", "dtype": "<i4"},
            [{"id": "delta", "dtype": "int32"}], [{"id": "delta", "dtype": "<i4", "astype": None}],
            [{"id": "delta"}],
        ],
    ),
    (
        {"id": "shuffle", "elementsize": 4},
        [[{"id": "shuffle"}], [{"id": "shuffle", "elementsize": 4.0}],
         [{"id": "shuffle", "elementsize": None}]],
    ),
    (
        {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<i4", "astype": "<i4"},
        [[{"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<i4"}],
         [{"id": "fixedscaleoffset", "offset": 0.0, "scale": 1.0, "dtype": "i4"}]],
    ),
    ({"id": "fletcher32"}, [[{"id": "fletcher32", "other": 1}], [{"id": "fletcher32"}]]),
]  # fmt: skip

VARIANTS = _variants()
"""All of them; no name is there twice."""
