"""Fill values in every JSON form, bit for bit."""

import base64
import struct

import pytest

from zarrfs.errors import MetadataError
from zarrfs.format.registry import find_data_type

FLOATS = [
    ("float32", "0x7F800001", "7f800001"),  # a signalling NaN keeps its bits
    ("float32", "0x7fc00000", "7fc00000"),
    ("float32", "0xffc12345", "ffc12345"),
    ("float32", "NaN", "7fc00000"),
    ("float32", "Infinity", "7f800000"),
    ("float32", "-Infinity", "ff800000"),
    ("float32", -0.0, "80000000"),
    ("float32", 0, "00000000"),
    ("float32", 1e-45, "00000001"),
    ("float32", 3.4028234663852886e38, "7f7fffff"),
    ("float32", 0.1, "3dcccccd"),
    ("float64", "0x7ff0000000000001", "7ff0000000000001"),
    ("float64", -0.0, "8000000000000000"),
    ("float64", "NaN", "7ff8000000000000"),
    ("float64", 5e-324, "0000000000000001"),
    ("float64", 2**53 + 2, struct.pack(">d", 2.0**53 + 2).hex()),
    ("float16", "0x7c01", "7c01"),
    ("float16", 65504, "7bff"),
    ("float16", "NaN", "7e00"),
]


@pytest.mark.parametrize(("name", "value", "bits"), FLOATS)
def test_floats(name, value, bits):
    data_type = find_data_type(name)
    fill = data_type.fill_bytes(value)
    assert fill == bytes.fromhex(bits)[::-1]
    assert data_type.element(fill).tobytes() == fill


@pytest.mark.parametrize(("name", "value", "stored"), [
    ("bool", True, b"\1"),
    ("bool", False, b"\0"),
    ("int8", -128, b"\x80"),
    ("uint8", 255, b"\xff"),
    ("int64", -(2**63), b"\0" * 7 + b"\x80"),
    ("uint64", 2**64 - 1, b"\xff" * 8),
    ("uint64", 2**53 + 1, (2**53 + 1).to_bytes(8, "little")),
    ("int32", 7.0, b"\7\0\0\0"),
    ("r24", [1, 2, 3], b"\1\2\3"),
    ("r24", base64.b64encode(b"\1\2\3").decode(), b"\1\2\3"),
    ("r8", [0], b"\0"),
])  # fmt: skip
def test_other_core_types(name, value, stored):
    assert find_data_type(name).fill_bytes(value) == stored


@pytest.mark.parametrize(("name", "value"), [
    ("bool", 1),
    ("bool", "true"),
    ("bool", None),
    ("int8", 128),
    ("int8", 1.5),
    ("int8", True),
    ("int8", "1"),
    ("int8", float("nan")),
    ("int8", float("inf")),
    ("uint64", -1),
    ("uint64", 2**64),
    ("float32", "0x7f80000"),
    ("float32", "0x7f80_001"),
    ("float32", "0x 7f80001"),
    ("float32", "nan"),
    ("float32", True),
    ("float32", None),
    ("float32", [1.0]),
    ("float32", {}),
    ("float64", 10**400),
    ("complex64", [1.0]),
    ("complex64", [1.0, 2.0, 3.0]),
    ("complex64", ["x", 0]),
    ("complex64", None),
    ("r16", [0]),
    ("r16", [0, 256]),
    ("r16", [0, True]),
    ("r16", "!!"),
    ("r16", "AAAA"),
    ("r16", 0),
])  # fmt: skip
def test_what_is_no_fill_value(name, value):
    with pytest.raises(ValueError):
        find_data_type(name).fill_bytes(value)


def test_the_metadata_names_a_bad_fill_value(parse):
    with pytest.raises(MetadataError, match="fill_value"):
        parse(fill_value=40000)
