"""Extension data types: names, fill values, byte orders, and their one form in memory."""

import base64
import sys
from importlib.metadata import EntryPoint

import ml_dtypes
import numpy as np
import pytest

from zarrfs.errors import DecodeError, MetadataError, UnsupportedError
from zarrfs.format import entry_points
from zarrfs.format.codec import BoundBytesBytes, ChunkSpec
from zarrfs.format.codecs.bytes import BytesCodec
from zarrfs.format.data_type import DataType
from zarrfs.format.data_types.core_types import CORE_DATA_TYPES
from zarrfs.format.data_types.fill_value import IntegerFill
from zarrfs.format.pipeline import CodecPipeline
from zarrfs.format.registry import DATA_TYPES, find_data_type, parse_data_type

CONFIGURED = {
    "numpy.datetime64": {"unit": "ms", "scale_factor": 10},
    "numpy.timedelta64": {"unit": "μs", "scale_factor": 1},
    "fixed_length_utf32": {"length_bytes": 12},
    "null_terminated_bytes": {"length_bytes": 5},
    "raw_bytes": {"length_bytes": 5},
    "struct": {
        "fields": [
            {"name": "a", "data_type": "int32"},
            {"name": "b", "data_type": "bfloat16"},
            {"name": "c", "data_type": {"name": "complex_float16"}},
            {"name": "r", "data_type": "r16"},
            {
                "name": "d",
                "data_type": {
                    "name": "struct",
                    "configuration": {
                        "fields": [
                            {"name": "x", "data_type": "float64"},
                            {
                                "name": "t",
                                "data_type": {
                                    "name": "numpy.datetime64",
                                    "configuration": {"unit": "s", "scale_factor": 1},
                                },
                            },
                        ]
                    },
                },
            },
        ]
    },
    "structured": {"fields": [["a", "int32"], ["b", "uint16"]]},
}
FIXED = [n for n in DATA_TYPES if find_data_type(n, CONFIGURED.get(n)).fixed_size]


def get(name):
    return find_data_type(name, CONFIGURED.get(name))


def codec_of(data_type, endian, shape=(7,)):
    spec = ChunkSpec(shape, data_type, bytes(data_type.item_size))
    return CodecPipeline((), BytesCodec(endian), ()).bind(spec)


@pytest.mark.parametrize("name", [*FIXED, *CORE_DATA_TYPES, "r24"])
def test_every_bit_survives_both_byte_orders(name):
    for endian in ("little", "big"):
        check_every_bit(name, endian)


def check_every_bit(name, endian):
    data_type = get(name)
    codec = codec_of(data_type, endian)
    raw = np.random.default_rng(1).integers(0, 256, 7 * data_type.item_size, np.uint8)
    if name == "bool":
        raw &= 1
    chunk = codec.decode(raw.tobytes())
    assert chunk.dtype == data_type.dtype
    stored = codec.encode(chunk)
    if data_type.canonical is None:
        assert bytes(stored) == raw.tobytes()
    assert codec.decode(bytes(stored)).tobytes() == chunk.tobytes()
    filled = ChunkSpec((3,), data_type, chunk[:1].tobytes()).filled()
    assert filled.tobytes() == chunk[:1].tobytes() * 3


@pytest.mark.parametrize("name", [*FIXED, "int16", "float64", "complex64"])
def test_big_endian_reverses_each_number(name):
    data_type = get(name)
    if "struct" in name:
        pytest.skip("has numbers of several sizes")
    little, big = codec_of(data_type, "little", (1,)), codec_of(data_type, "big", (1,))
    raw = bytes(range(1, data_type.item_size + 1))
    parts = 2 if data_type.name.startswith("complex") else 1
    if data_type.dtype.kind == "U":
        parts = data_type.item_size // 4
    if data_type.dtype.kind in "SV" and data_type.dtype.names is None and "float" not in name:
        parts = data_type.item_size
    size = data_type.item_size // parts
    swapped = b"".join(raw[i : i + size][::-1] for i in range(0, len(raw), size))
    assert big.decode(swapped).tobytes() == little.decode(raw).tobytes()


def test_a_struct_reverses_each_field():
    data_type = get("struct")
    value = np.zeros(1, data_type.dtype)
    value["a"], value["d"]["x"], value["d"]["t"] = 0x01020304, 1.0, 5
    value["b"] = ml_dtypes.bfloat16(1.0)
    value["c"]["imag"] = 1.0
    value["r"] = np.void(b"\x01\x02")
    assert bytes(codec_of(data_type, "big", (1,)).encode(value)) == bytes.fromhex(
        "01020304 3f80 0000 3c00 0102 3ff0000000000000 0000000000000005"
    )


@pytest.mark.parametrize(("name", "stored", "canonical"), [
    ("int2", [0b0000_0001, 0b1111_1110, 0b1010_1011], [1, -2, -1]),
    ("int4", [0x07, 0xF8, 0xA9, 0x0F], [7, -8, -7, -1]),
    ("uint2", [0xFF, 0xFC, 0x01], [3, 0, 1]),
    ("uint4", [0xFF, 0xF0, 0x5A], [15, 0, 10]),
])  # fmt: skip
def test_small_integers_are_canonical_in_memory(name, stored, canonical):
    codec = codec_of(get(name), "little", (len(stored),))
    assert codec.decode(bytes(stored)).tolist() == canonical


@pytest.mark.parametrize(("name", "bits"), [
    ("float4_e2m1fn", 4), ("float6_e2m3fn", 6), ("float6_e3m2fn", 6), ("complex_float4_e2m1fn", 4),
    ("complex_float6_e3m2fn", 6),
])  # fmt: skip
def test_small_floats_are_canonical_in_memory(name, bits):
    data_type = get(name)
    raw = bytes(range(0, 256, 3))[: 84 // data_type.item_size * data_type.item_size]
    count = len(raw) // data_type.item_size
    chunk = codec_of(data_type, "little", (count,)).decode(raw)
    assert chunk.tobytes() == bytes(b & (1 << bits) - 1 for b in raw)


def test_a_struct_checks_and_canonises_its_fields():
    data_type = parse_data_type(
        {
            "name": "struct",
            "configuration": {
                "fields": [
                    {"name": "flag", "data_type": "bool"},
                    {"name": "n", "data_type": "int4"},
                    {"name": "v", "data_type": "uint16"},
                ]
            },
        }
    )
    codec = codec_of(data_type, "big", (2,))
    assert codec.decode(b"\1\xf8\0\1\0\x07\0\2").tolist() == [(True, -8, 1), (False, 7, 2)]
    with pytest.raises(DecodeError, match="bool"):
        codec.decode(b"\2\xf8\0\1\0\x07\0\2")


@pytest.mark.parametrize(("name", "value", "stored"), [
    ("bfloat16", "NaN", "c07f"),
    ("bfloat16", "0x7f81", "817f"),
    ("bfloat16", -0.0, "0080"),
    ("bfloat16", "-Infinity", "80ff"),
    ("float8_e3m4", "NaN", "78"),
    ("float8_e4m3", "NaN", "7c"),
    ("float8_e4m3fn", "NaN", "7f"),
    ("float8_e4m3b11fnuz", "NaN", "80"),
    ("float8_e4m3fnuz", "NaN", "80"),
    ("float8_e5m2", "NaN", "7e"),
    ("float8_e5m2fnuz", "NaN", "80"),
    ("float8_e8m0fnu", "NaN", "ff"),
    ("float8_e8m0fnu", 1.0, "7f"),
    ("float8_e5m2", "0x7d", "7d"),
    ("float4_e2m1fn", 6, "07"),
    ("float4_e2m1fn", "0xf7", "07"),
    ("int4", -8, "f8"),
    ("uint2", 3, "03"),
    ("complex_bfloat16", [1.0, "NaN"], "803fc07f"),
    ("complex_float16", [1.0, -0.0], "003c0080"),
    ("complex_float32", ["0x7f800001", 0], "0100807f00000000"),
    ("complex_float64", 1.0, "000000000000f03f" + "00" * 8),
    ("complex_float8_e5m2", [1, "0x7d"], "3c7d"),
    ("numpy.datetime64", "NaT", "0000000000000080"),
    ("numpy.datetime64", -1, "ff" * 8),
    ("numpy.timedelta64", 2, "0200000000000000"),
    ("fixed_length_utf32", "aé", "61000000e900000000000000"),
    ("fixed_length_utf32", "", "00" * 12),
    ("null_terminated_bytes", "YWI=", "6162000000"),
    ("raw_bytes", "AQIDBAU=", "0102030405"),
    ("raw_bytes", [1, 2, 3, 4, 5], "0102030405"),
    ("structured", "AQAAAAIA", "010000000200"),
    ("structured", {"a": 1, "b": 2}, "010000000200"),
    ("structured", 0, "00" * 6),
])  # fmt: skip
def test_fill_values(name, value, stored):
    assert get(name).fill_bytes(value).hex() == stored


@pytest.mark.parametrize(("name", "value"), [
    ("float4_e2m1fn", "NaN"), ("float4_e2m1fn", "Infinity"), ("float6_e3m2fn", "-Infinity"),
    ("float8_e4m3fn", "Infinity"), ("float8_e8m0fnu", 0.0), ("float8_e8m0fnu", -1.0),
    ("float8_e5m2fnuz", "Infinity"), ("int4", 8), ("int2", -3), ("uint4", -1), ("uint2", 4),
    ("numpy.datetime64", "2020-01-01"), ("numpy.datetime64", 2**63), ("numpy.datetime64", 1.5),
    ("fixed_length_utf32", "abcd"), ("fixed_length_utf32", 0),
    ("null_terminated_bytes", "YWJjZGVm"),
    ("raw_bytes", "AQID"), ("structured", {"a": 1}), ("structured", {"a": 1, "b": 2, "c": 3}),
    ("structured", "AQID"), ("structured", {"a": 1, "b": -2}), ("struct", [1]),
    ("bytes", "!"), ("bytes", [300]), ("string", [1]), ("string", True),
])  # fmt: skip
def test_what_is_no_fill_value(name, value):
    with pytest.raises(ValueError):
        get(name).fill_bytes(value)


@pytest.mark.parametrize(("name", "value", "element"), [
    ("string", "aé\ud800", "aé\ud800"),
    ("string", "", ""),
    ("bytes", [1, 2, 255], b"\1\2\xff"),
    ("bytes", "AQL/", b"\1\2\xff"),
    ("variable_length_bytes", "", b""),
])  # fmt: skip
def test_variable_types_have_objects(name, value, element):
    data_type = get(name)
    assert not data_type.fixed_size
    spec = ChunkSpec((2, 2), data_type, data_type.fill_bytes(value))
    assert spec.filled().ravel().tolist() == [element] * 4


@pytest.mark.parametrize(("value", "error"), [
    ({"name": "numpy.datetime64"}, "unit"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "parsec", "scale_factor": 1}}, "unit"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 0}}, "scale"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 2**31}}, "scale"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale": 1}}, "only"),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 5}}, "multiple"),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": -4}}, "length_bytes"),
    ({"name": "raw_bytes", "configuration": {"length_bytes": 2**40}}, "length_bytes"),
    ({"name": "raw_bytes"}, "length_bytes"),
    ({"name": "int8", "configuration": {"x": 1}}, "no configuration"),
    ({"name": "int4", "configuration": {"x": 1}}, "no configuration"),
    ({"name": "struct"}, "fields"),
    ({"name": "struct", "configuration": {"fields": []}}, "fields"),
    ({"name": "struct", "configuration": {"fields": [["a", "int8"], ["a", "int8"]]}}, "unique"),
    ({"name": "struct", "configuration": {"fields": [["", "int8"]]}}, "empty"),
    ({"name": "struct", "configuration": {"fields": [["a", "string"]]}}, "fixed size"),
    ({"name": "struct", "configuration": {"fields": ["a"]}}, "field"),
    ({"name": "struct", "configuration": {"fields": [["a", "no-such-type"]]}}, "unknown"),
    (5, "not a data"), (None, "not a data"), ({}, "not a data"), (["int8"], "not a data"),
    ("r12", "unknown"), ("r0", "unknown"), ("r", "unknown"), ("r08", "unknown"),
    ("r99999999999999", "unknown"), ("int128", "unknown"),
])  # fmt: skip
def test_what_is_no_data_type(value, error):
    with pytest.raises(ValueError, match=error):
        parse_data_type(value)


class TestInMetadata:
    def test_an_array_of_records(self, parse):
        fields = [{"name": "x", "data_type": "float32"}, {"name": "n", "data_type": "uint8"}]
        array = parse(
            data_type={"name": "struct", "configuration": {"fields": fields}},
            fill_value={"x": "0x7f800001", "n": 7},
        )
        assert array.layout.fill.hex() == "0100807f07"
        assert array.nbytes == 35 * 5

    @pytest.mark.parametrize(("endian", "raw"), [
        ("little", "010000000200"), ("big", "000000010002"),
    ])  # fmt: skip
    def test_base64_of_a_record_is_in_stored_byte_order(self, parse, endian, raw):
        array = parse(
            data_type={"name": "structured", "configuration": CONFIGURED["structured"]},
            fill_value=base64.b64encode(bytes.fromhex(raw)).decode(),
            codecs=[{"name": "bytes", "configuration": {"endian": endian}}],
        )
        assert array.layout.fill.hex() == "010000000200"

    def test_strings(self, parse):
        array = parse(
            data_type="string", fill_value="x",
            codecs=["vlen-utf8", {"name": "gzip", "configuration": {"level": 1}}],
        )  # fmt: skip
        codec = array.layout.chunk_codec((2, 3))
        chunk = np.array([["a", "", "ä"], ["b" * 1000, "\0", "😀"]], object)
        assert codec.decode(bytes(codec.encode(chunk))).tolist() == chunk.tolist()
        with pytest.raises(DecodeError, match="elements"):
            array.layout.chunk_codec((3, 3)).decode(bytes(codec.encode(chunk)))

    def test_strings_need_a_codec_for_strings(self, parse):
        with pytest.raises(MetadataError):
            parse(data_type="string", fill_value="", codecs=["bytes"])
        with pytest.raises(MetadataError):
            parse(codecs=["vlen-utf8"])

    def test_unknown_types_are_named(self, parse):
        with pytest.raises(UnsupportedError, match=r"my\.type"):
            parse(data_type={"name": "my.type"})


MY_TYPE = DataType("my.type", np.dtype("<i4"), IntegerFill(-(2**31), 2**31 - 1))


class MyCodec(BoundBytesBytes):
    kind = "bytes -> bytes"

    def bind(self, decoded):
        self.encoded = decoded
        return self

    def decode(self, data, out):
        return bytes(b ^ 0xFF for b in data)

    encode = property(lambda self: lambda data: self.decode(data, None))


def my_parametrised_type(name, configuration):
    return DataType(name, np.dtype(f"<i{configuration['size']}"), IntegerFill(0, 100))


class TestEntryPoints:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch):
        here = sys.modules[__name__]
        monkeypatch.setitem(sys.modules, "somebodys_package", here)
        points = [
            EntryPoint("my.type", "somebodys_package:MY_TYPE", "zarrfs.data_types"),
            EntryPoint("my.sized", "somebodys_package:my_parametrised_type", "zarrfs.data_types"),
            EntryPoint("my.codec", "somebodys_package:MyCodec", "zarrfs.codecs"),
            EntryPoint("my.broken", "no_such_package:X", "zarrfs.data_types"),
            EntryPoint("my.wrong", "somebodys_package:TestEntryPoints", "zarrfs.codecs"),
        ]
        asked = []

        def installed(group, name):
            asked.append(name)
            return [p for p in points if (p.group, p.name) == (group, name)]

        monkeypatch.setattr(entry_points, "entry_points", installed)
        self.asked = asked

    def test_a_data_type_and_a_codec_of_another_package(self, parse):
        array = parse(
            data_type={"name": "my.type"}, fill_value=5,
            codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, "my.codec"],
        )  # fmt: skip
        codec = array.layout.chunk_codec((2,))
        assert codec.decode(b"\xfe\xff\xff\xff" * 2).tolist() == [1, 1]

    def test_a_configured_data_type(self, parse):
        data_type = {"name": "my.sized", "configuration": {"size": 8}}
        assert parse(data_type=data_type).layout.data_type.item_size == 8

    def test_one_that_cannot_be_loaded(self, parse):
        with pytest.raises(MetadataError, match="no_such_package"):
            parse(data_type={"name": "my.broken"})
        with pytest.raises(MetadataError, match="kind"):
            parse(codecs=["bytes", "my.wrong"])

    def test_known_names_are_not_looked_up(self, parse):
        parse()
        assert self.asked == []


def test_core_types_have_dtypes_of_numpy_itself():
    """Files of HDF5 and `.zarray` take a dtype that is not built in for one of another package."""
    from_numpy = [data_type.dtype.isbuiltin for data_type in CORE_DATA_TYPES.values()]
    assert from_numpy == [1] * len(CORE_DATA_TYPES)
