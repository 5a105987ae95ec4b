"""Documents and chunks that deviate from the specification and are found in the wild."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numcodecs

from .rows import Rows
from .samples import LITTLE, Json, Sample, v2, v3

_GZIP: Json = {"name": "gzip", "configuration": {"level": 1}}
_ZLIB: Json = {"id": "zlib", "level": 1}
_BLOSC: Json = {
    "cname": "zstd",
    "clevel": 5,
    "shuffle": "shuffle",
    "typesize": 4,
    "blocksize": 0,
}
_ZSTD: Json = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}


def _two_members(chunk: bytes) -> bytes:
    data = gzip.decompress(chunk)
    return gzip.compress(data[:20], mtime=0) + gzip.compress(data[20:], mtime=0)


def _two_frames(chunk: bytes) -> bytes:
    codec = numcodecs.Zstd(1)
    data = bytes(codec.decode(chunk))
    return bytes(codec.encode(data[:20])) + bytes(codec.encode(data[20:]))


def _without(document: Json, *members: str) -> Json:
    return {name: value for name, value in document.items() if name not in members}


def _deviant(document: Any, strict: Json) -> list[Sample]:
    return [Sample(strict["zarr_format"], document, strict)]


def rows_of_v3() -> Rows:
    transposed = {"name": "transpose", "configuration": {"order": [1, 0]}}
    lettered = {"name": "transpose", "configuration": {"order": "F"}}
    understood = {**LITTLE, "must_understand": True}
    return {
        'a codec as a name alone: `"codecs": ["bytes"]`': _deviant(
            v3("int8", codecs=["bytes"]), v3("int8", codecs=[{"name": "bytes"}])
        ),
        "`must_understand: true` in a codec": _deviant(v3(codecs=[understood]), v3()),
        "`attributes: null`": _deviant(v3(attributes=None), v3()),
        "`dimension_names: null`": _deviant(v3(dimension_names=None), v3()),
        "no `endian` on a type of several bytes: little": _deviant(
            v3(codecs=[{"name": "bytes"}]), v3()
        ),
        '`transpose` with `order: "C"` or `"F"`': _deviant(
            v3(codecs=[lettered, LITTLE]), v3(codecs=[transposed, LITTLE])
        ),
        "`fill_value: null` (as zeros)": _deviant(v3(fill_value=None), v3()),
        "a bare `NaN` as fill value": _deviant(
            json.dumps(v3("float32", fill_value=float("nan"))), v3("float32", fill_value="NaN")
        ),
        "a whole float as fill value of an integer type": _deviant(v3(fill_value=0.0), v3()),
        "one number as fill value of a complex type": _deviant(
            v3("complex64"), v3("complex64", fill_value=[0.0, 0.0])
        ),
        "base64 as fill value of raw bits": _deviant(
            v3("r24", fill_value="AAAA"), v3("r24", fill_value=[0, 0, 0])
        ),
        "a string as fill value of a number": [
            *_deviant(v3(fill_value="0"), v3()),
            *_deviant(v3("float32", fill_value="nan"), v3("float32", fill_value="NaN")),
        ],
        "0 or 1 as fill value of a bool": _deviant(
            v3("bool", fill_value=1), v3("bool", fill_value=True)
        ),
        "a string as fill value of a bool": _deviant(
            v3("bool", fill_value="0"), v3("bool", fill_value=False)
        ),
        "`storage_transformers: null`": _deviant(v3(storage_transformers=None), v3()),
        "`zarr_format: 3.0`": _deviant(v3(zarr_format=3.0), v3()),
        "`endian: null`": _deviant(
            v3("int8", codecs=[{"name": "bytes", "configuration": {"endian": None}}]),
            v3("int8", codecs=[{"name": "bytes"}]),
        ),
        "whole floats as lengths": _deviant(v3(shape=[4.0, 3.0]), v3()),
        "a configuration that is null": _deviant(
            v3({"name": "int32", "configuration": None}), v3()
        ),
        "`must_understand: false` where all is understood": _deviant(
            v3(codecs=[{**LITTLE, "must_understand": False}]), v3()
        ),
        "blosc without `shuffle`, `typesize` or another of its members": _deviant(
            v3(codecs=[LITTLE, {"name": "blosc", "configuration": {"cname": "zstd"}}]),
            v3(codecs=[LITTLE, {"name": "blosc", "configuration": _BLOSC}]),
        ),
        "gzip or zstd without `level`": _deviant(
            v3(codecs=[LITTLE, {"name": "gzip", "configuration": {}}]),
            v3(codecs=[LITTLE, _GZIP]),
        ),
        "an `id` in the configuration of `numcodecs.…`": _deviant(
            v3(codecs=[LITTLE, {"name": "numcodecs.zlib", "configuration": _ZLIB}]),
            v3(codecs=[LITTLE, {"name": "numcodecs.zlib", "configuration": {"level": 1}}]),
        ),
        'an unknown member with `"must_understand": false`': _deviant(
            v3(novelty={"must_understand": False}), v3()
        ),
        "an unknown member without": _deviant(v3(novelty={"a": 1}), v3()),
        "gzip of several members": [Sample(3, v3(codecs=[LITTLE, _GZIP]), None, _two_members)],
        "gzip with zeros behind it": [
            Sample(3, v3(codecs=[LITTLE, _GZIP]), None, lambda chunk: chunk + bytes(8))
        ],
        "zstd of several frames": [Sample(3, v3(codecs=[LITTLE, _ZSTD]), None, _two_frames)],
        "gzip with other bytes behind it": [
            Sample(3, v3(codecs=[LITTLE, _GZIP]), None, lambda chunk: chunk + b"junk")
        ],
        "a bool that is neither 0 nor 1": [
            Sample(3, v3("bool", fill_value=False), None, lambda chunk: b"\2" + chunk[1:])
        ],
    }


def rows_of_v2() -> Rows:
    plain = v2()
    floats = v2("<f4", fill_value="NaN")
    zstd = {"id": "zstd", "level": 1}
    fletcher: Json = {"id": "fletcher32"}
    return {
        "`fill_value: null` (as zeros)": _deviant(v2(fill_value=None), plain),
        "0 as fill value of `S`, `U` or `V`": _deviant(v2("|S4"), v2("|S4", fill_value="")),
        "0 as fill value of a bool": _deviant(v2("|b1"), v2("|b1", fill_value=False)),
        "a byte order on one byte: `<u1`": _deviant(v2("<u1"), v2("|u1")),
        "a string as fill value of a number": [
            *_deviant(v2("<f4", fill_value="nan"), floats),
            *_deviant(v2("<f4", fill_value="0"), v2("<f4")),
        ],
        "a bare `NaN` as fill value": _deviant(
            json.dumps(v2("<f4", fill_value=float("nan"))), floats
        ),
        "a list as complex fill value": _deviant(
            v2("<c8", fill_value=[0.0, 0.0]), v2("<c8", fill_value=None)
        ),
        "no `filters`": _deviant(_without(plain, "filters"), plain),
        "no `compressor`": _deviant(_without(plain, "compressor"), plain),
        "`filters: []`": _deviant(v2(filters=[]), plain),
        "unknown members": _deviant(v2(novelty=1), plain),
        "`checksum` in zstd": _deviant(
            v2(compressor={**zstd, "checksum": False}), v2(compressor=zstd)
        ),
        "a checksum as compressor": _deviant(v2(compressor=fletcher), v2(filters=[fletcher])),
        "zlib with other bytes behind it": [
            Sample(2, v2(compressor=_ZLIB), None, lambda chunk: chunk + bytes(8))
        ],
    }
