"""Documents that say one thing in many ways: what other writers and people by hand make of it.

Every variant has a document with no deviation beside it, by which chunks are made. Whether it
says the same, or anything at all, is for the implementations that read it to say.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from docs.format_support.samples import LITTLE, Json, v2, v3

from .codec_variants import ABSENT, BYTES_OF_INT8, NUMCODECS, V2_COMPRESSORS, V2_FILTERS, V3_CODECS

_GRID: Json = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}


class Variant(NamedTuple):
    """``text`` is a document; ``strict`` is the one that its chunks are made by."""

    name: str
    version: int
    text: str
    strict: Json


# In numbers and strings, as JSON has them and as it has not.
_FILLS: tuple[Any, ...] = (
    0, 1, -1, 2, 7, 300, 0.0, 1.0, 1.5, -0.0, 1e3, -1.5, True, False, None, ABSENT,
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
    if value is ABSENT:
        return json.dumps({name: item for name, item in document.items() if name != member})
    return json.dumps({**document, member: value})


def _say(value: Any) -> str:
    return "absent" if value is ABSENT else json.dumps(value)


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
    for codecs in BYTES_OF_INT8:
        text = _with(bytes_, "codecs", codecs)
        yield Variant(f"v3 int8 codecs {_say(codecs)}", 3, text, bytes_)
    for strict_codecs, others in V3_CODECS:
        strict = v3("int32", chunk_grid=_GRID, codecs=strict_codecs)
        for codecs in others:
            yield Variant(f"v3 codecs {_say(codecs)}", 3, _with(strict, "codecs", codecs), strict)
    for name, configuration in NUMCODECS.items():
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
    for codec, others in V2_COMPRESSORS:
        strict = v2(chunks=[2, 3], compressor=codec)
        for other in others:
            text = _with(strict, "compressor", other)
            yield Variant(f"v2 compressor {_say(other)}", 2, text, strict)
    for codec, others in V2_FILTERS:
        strict = v2(chunks=[2, 3], filters=[codec])
        for other in others:
            text = _with(strict, "filters", other)
            yield Variant(f"v2 filters {_say(other)}", 2, text, strict)


_V3_MEMBERS: dict[str, tuple[Any, ...]] = {
    "zarr_format": (3, 3.0, "3", None, True, ABSENT),
    "node_type": ("Array", None, ABSENT, "arrays"),
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
        {"name": "Default"}, None, ABSENT,
    ),
    "dimension_names": (
        None, [None, None], ["a", None], ["a", "b"], ["a", "a"], ["", ""], ["a"], [], "ab",
        [1, 2], ["a", "b", "c"], ABSENT,
    ),
    "attributes": (None, [], "a", {"a": None}, {"a": float("nan")}, {"": {}}, ABSENT),
    "storage_transformers": (None, [], {}, [{"name": "novelty"}], "none", ABSENT),
    "consolidated_metadata": (None, {}, {"must_understand": False}),
    "novelty": (
        None, {}, {"must_understand": False}, {"must_understand": True}, 1, False,
        {"name": "novelty", "must_understand": False}, {"must_understand": "false"},
    ),
    "must_understand": (True, False),
    "extensions": ([], None),
    "chunk_memory_layout": ("C",),
    "fill_value": (ABSENT,),
}  # fmt: skip

_V2_MEMBERS: dict[str, tuple[Any, ...]] = {
    "zarr_format": (2, 2.0, "2", None, True, ABSENT),
    "shape": ([4.0, 3.0], [4.0, 3], ["4", "3"], {"0": 4}, None),
    "chunks": ([2.0, 3.0], ["2", "3"], 2, True, None, [2], [2, None], [2, -1]),
    "order": ("c", None, "A", ABSENT, "F "),
    "dimension_separator": (".", None, "", ABSENT, 0),
    "filters": ([], {}, [None], "none", ABSENT, False),
    "compressor": ({}, [], "none", ABSENT, False, {"id": None}, {"id": "none"}, ""),
    "novelty": (None, 1, {}),
    "attributes": ({}, None),
    "fill_value": (ABSENT,),
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

VARIANTS = _variants()
"""All of them; no name is there twice."""
