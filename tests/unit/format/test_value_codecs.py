"""Codecs that change numbers: against oracles of exact arithmetic and documented samples."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.soak import examples
from zarrfs.errors import DecodeError, MetadataError
from zarrfs.format.codec import ChunkSpec, SizeBound
from zarrfs.format.codecs.buffer_filter import BufferFilter
from zarrfs.format.metadata.pipelines import parse_pipeline
from zarrfs.format.registry import find_codec, find_data_type, parse_data_type

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def bind(name, configuration, data_type, count, fill=0):
    codec = find_codec(name)[1](**configuration)
    data_type = find_data_type(data_type)
    return codec.bind(ChunkSpec((count,), data_type, data_type.fill_bytes(fill)))


ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative",
             "nearest-away")  # fmt: skip


def round_fraction(value, rounding):
    """An integer from a fraction, by the rules of ``cast_value``."""
    low = math.floor(value)
    if value == low:
        return low
    match rounding:
        case "towards-zero":
            return low if value > 0 else low + 1
        case "towards-positive":
            return low + 1
        case "towards-negative":
            return low
    if value - low != Fraction(1, 2):
        return low if value - low < Fraction(1, 2) else low + 1
    if rounding == "nearest-away":
        return low + 1 if value > 0 else low
    return low if low % 2 == 0 else low + 1


def oracle_to_integer(value, rounding, out_of_range, low, high):
    """None where the rules have no answer."""
    if not math.isfinite(value):
        return None
    whole = round_fraction(Fraction(value), rounding)
    if low <= whole <= high:
        return whole
    if out_of_range == "clamp":
        return min(max(whole, low), high)
    if out_of_range == "wrap":
        return (whole - low) % (high - low + 1) + low
    return None


def grid_of(name):
    """The finite values of a small float type, sorted, without the second zero."""
    dtype = find_data_type(name).dtype
    if dtype.itemsize == 1:
        bits = find_data_type(name).bits or 8
        values = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float64)
    else:
        values = np.arange(1 << 16).astype("<u2").view(dtype).astype(np.float64)
    return sorted({Fraction(v) for v in values.tolist() if math.isfinite(v)})


def oracle_to_float(value, rounding, out_of_range, grid, infinite):
    value = Fraction(value)
    step = grid[-1] - grid[-2]
    extended = [grid[0] - step, *grid, grid[-1] + step]
    if value in grid:
        return value
    if grid[0] < value < grid[-1]:
        above = next(i for i, g in enumerate(grid) if g > value)
        low, high = grid[above - 1], grid[above]
    else:
        low, high = extended[:2] if value < 0 else extended[-2:]
        if not low < value < high:
            low = high = value
    if low == high:
        chosen = low
    elif rounding in ("nearest-even", "nearest-away") and value - low != high - value:
        chosen = low if value - low < high - value else high
    elif rounding == "nearest-even":
        # The even one of two neighbours is the one on the grid of twice the step.
        chosen = low if (low / (high - low)) % 2 == 0 else high
    elif rounding == "nearest-away":
        chosen = low if abs(low) > abs(high) else high
    elif rounding == "towards-zero":
        chosen = low if abs(low) < abs(high) else high
    else:
        chosen = high if rounding == "towards-positive" else low
    if grid[0] <= chosen <= grid[-1]:
        return chosen
    if out_of_range != "clamp":
        return None
    sign = 1 if value > 0 else -1
    return sign * math.inf if infinite else sign * grid[-1]


EDGES = [
    0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 127.5, 128.0, 255.5, 1e300, -1e300, math.inf, math.nan,
    0.49999999999999994, 6.0, 7.0, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65520.0, 1e-8,
]  # fmt: skip
EIGHTHS = st.integers(-1000, 1000).map(lambda n: n / 8)
FLOATS = st.floats(-1e4, 1e4, width=64) | EIGHTHS | st.sampled_from(EDGES)


def check_cast(value, name, rounding, out_of_range, expected):
    """Of one float64. ``expected`` : None where the rules have no answer."""
    configuration = {"data_type": name, "rounding": rounding}
    if out_of_range:
        configuration["out_of_range"] = out_of_range
    bound = bind("cast_value", configuration, "float64", 1)
    if expected is None:
        with pytest.raises(ValueError, match="cast_value"):
            bound.encode(np.array([value]))
    else:
        kind = int if isinstance(expected, int) else float
        assert [kind(found) for found in bound.encode(np.array([value]))] == [expected]


class TestCastValue:
    @pytest.mark.parametrize(("name", "low", "high"), [
        ("int8", -128, 127), ("uint8", 0, 255), ("int4", -8, 7), ("uint2", 0, 3),
        ("int64", -(2**63), 2**63 - 1), ("uint64", 0, 2**64 - 1),
    ])  # fmt: skip
    @pytest.mark.parametrize("out_of_range", [None, "clamp", "wrap"])
    @examples(30)
    @given(value=FLOATS, rounding=st.sampled_from(ROUNDINGS))
    def test_to_integers(self, name, low, high, out_of_range, value, rounding):
        expected = oracle_to_integer(value, rounding, out_of_range, low, high)
        check_cast(value, name, rounding, out_of_range, expected)

    @pytest.mark.parametrize("name", [
        "float4_e2m1fn", "float6_e3m2fn", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
        "float8_e3m4",
    ])  # fmt: skip
    @pytest.mark.parametrize("out_of_range", [None, "clamp"])
    @examples(30)
    @given(value=FLOATS.filter(math.isfinite), rounding=st.sampled_from(ROUNDINGS))
    @example(value=460.0, rounding="nearest-away")
    @example(value=-460.0, rounding="nearest-even")
    # Halves of the least numbers in a float32, above them in a float64.
    @example(value=0.25 + 2**-30, rounding="nearest-even")
    @example(value=2**-17 + 2**-45, rounding="nearest-even")
    def test_to_small_floats(self, name, out_of_range, value, rounding):
        infinite = name in ("float8_e5m2", "float8_e3m4")
        expected = oracle_to_float(value, rounding, out_of_range, grid_of(name), infinite)
        check_cast(value, name, rounding, out_of_range, expected)

    @pytest.mark.parametrize("rounding", ROUNDINGS)
    def test_to_floats_without_a_sign(self, rounding):
        bound = bind("cast_value", {"data_type": "float8_e8m0fnu", "rounding": rounding},
                     "float64", 4, fill=1.0)  # fmt: skip
        down = rounding in ("towards-zero", "towards-negative")
        up = rounding == "towards-positive"
        encoded = bound.encode(np.array([2.0, 2.5, 3.5, 5.0])).astype(np.float64)
        assert encoded.tolist() == [2, 4 if up else 2, 2 if down else 4, 8 if up else 4]

    @pytest.mark.parametrize("rounding", ROUNDINGS)
    @pytest.mark.parametrize("out_of_range", [None, "clamp"])
    def test_a_number_less_than_0_is_none_of_a_type_without_a_sign(self, rounding, out_of_range):
        configuration = {"data_type": "float8_e8m0fnu", "rounding": rounding}
        if out_of_range:
            configuration["out_of_range"] = out_of_range
        bound = bind("cast_value", configuration, "float64", 1, fill=1.0)
        for value in (-1.0, -1.702e38, -1e39):
            with pytest.raises(ValueError, match="out of the range"):
                bound.encode(np.array([value]))

    @pytest.mark.parametrize("rounding", ROUNDINGS)
    @examples(30)
    @given(
        value=st.integers(-(2**63), 2**63 - 1)
        | st.sampled_from(
            [2**53 + 1, 2**53 - 1, -(2**53) - 1, 2**62 + 257, 2**24 + 1, 2**54 + 2, 2**54 + 6]
        )
    )
    def test_integers_of_64_bits_to_floats(self, rounding, value):
        for name, digits in (("float64", 53), ("float32", 24)):
            bound = bind("cast_value", {"data_type": name, "rounding": rounding}, "int64", 1)
            drop = max(0, abs(value).bit_length() - digits)
            expected = round_fraction(Fraction(value, 1 << drop), rounding) << drop
            encoded = bound.encode(np.array([value], "<i8"))
            assert int(encoded[0]) == expected

    def test_scalar_map_comes_first_and_its_first_pair_wins(self):
        scalar_map = {"encode": [["NaN", 255], ["Infinity", 254], [1.0, 9], [1.0, 8]],
                      "decode": [[255, "NaN"], [254, "Infinity"]]}  # fmt: skip
        configuration = {"data_type": "uint8", "scalar_map": scalar_map}
        bound = bind("cast_value", configuration, "float32", 5)
        values = np.array([np.nan, np.inf, 1.0, 2.0, -0.0], "<f4")
        assert bound.encode(values).tolist() == [255, 254, 9, 2, 0]
        back = bound.decode(np.array([255, 254, 1, 2, 0], "u1"))
        assert str(back.tolist()) == "[nan, inf, 1.0, 2.0, 0.0]"

    @pytest.mark.parametrize("pairs", [5, "ab", ["ab"], [[1]], [[1, 2, 3]], {"ab": 1}])
    def test_a_scalar_map_is_a_list_of_pairs(self, pairs):
        with pytest.raises(ValueError, match="pairs"):
            bind("cast_value", {"data_type": "uint8", "scalar_map": {"encode": pairs}}, "int8", 1)

    def test_special_values(self):
        bound = bind("cast_value", {"data_type": "float16"}, "float64", 4)
        encoded = bound.encode(np.array([np.nan, np.inf, -np.inf, -0.0]))
        assert str(encoded.tolist()) == "[nan, inf, -inf, -0.0]"
        for value in (np.nan, np.inf):
            with pytest.raises(ValueError, match="cast_value"):
                bind("cast_value", {"data_type": "float4_e2m1fn"}, "float64", 1).encode(
                    np.array([value])
                )

    def test_what_cannot_be_decoded_is_an_error(self):
        bound = bind("cast_value", {"data_type": "int16"}, "int8", 1)
        with pytest.raises(DecodeError, match="range"):
            bound.decode(np.array([128], "<i2"))

    def test_the_fill_value_goes_through_and_must_survive(self):
        bound = bind("cast_value", {"data_type": "int16"}, "float64", 1, fill=-7)
        assert bound.encoded.fill == (-7).to_bytes(2, "little", signed=True)
        with pytest.raises(ValueError, match="survive"):
            bind("cast_value", {"data_type": "int16"}, "float64", 1, fill=0.5)
        with pytest.raises(ValueError, match="NaN"):
            bind("cast_value", {"data_type": "int16"}, "float64", 1, fill="NaN")

    def test_behind_it_shards_have_the_cast_fill_value(self, parse):
        sharding = {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2, 2], "codecs": [LITTLE], "index_codecs": [LITTLE]},
        }
        array = parse(
            shape=[4, 4], data_type="float32", fill_value="NaN",
            chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
            codecs=[
                {"name": "scale_offset", "configuration": {"offset": -10, "scale": 0.5}},
                {"name": "cast_value", "configuration": {
                    "data_type": "uint8",
                    "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}}},
                sharding,
            ],
        )  # fmt: skip
        assert array.layout.read.regular_shape == (2, 2)
        chunk = array.layout.chunk_codec((2, 2)).decode(bytes([0, 5, 6, 255]))
        assert str(chunk.ravel().tolist()) == "[nan, 0.0, 2.0, 500.0]"
        assert np.isnan(array.layout.spec((2, 2)).filled()).all()
        whole = parse_pipeline([
            *array.summary["codecs"],
        ]).bind(array.layout.spec((4, 4)))  # fmt: skip
        missing = whole.decode(b"\xff" * 64)
        assert np.isnan(missing).all()
        assert len(whole.encode(missing)) == 64


class TestScaleOffset:
    def test_floats_in_their_own_precision(self):
        bound = bind("scale_offset", {"offset": 5, "scale": 0.1}, "float32", 2)
        values = np.array([5.5, 1e6], "<f4")
        expected = (values - np.float32(5)) * np.float32(0.1)
        assert bound.encode(values).tobytes() == expected.tobytes()
        back = expected / np.float32(0.1) + np.float32(5)
        assert bound.decode(expected).tobytes() == back.tobytes()

    def test_small_floats(self):
        bound = bind("scale_offset", {"offset": 1, "scale": 2}, "bfloat16", 2)
        values = np.array([3.0, -1.0]).astype(bound.encoded.dtype)
        assert bound.encode(values).astype(float).tolist() == [4.0, -4.0]
        assert bound.decode(bound.encode(values)).astype(float).tolist() == [3.0, -1.0]

    def test_unsigned_integers(self):
        bound = bind("scale_offset", {"offset": 1000}, "uint16", 2, fill=1000)
        assert bound.encode(np.array([1000, 1255], "<u2")).tolist() == [0, 255]
        assert bound.decode(np.array([0, 255], "<u2")).tolist() == [1000, 1255]
        assert bound.encoded.fill == b"\0\0"
        with pytest.raises(ValueError, match="range"):
            bound.encode(np.array([999], "<u2"))
        with pytest.raises(DecodeError, match="range"):
            bound.decode(np.array([65535], "<u2"))

    def test_64_bits_are_exact(self):
        bound = bind("scale_offset", {"offset": 1, "scale": 3}, "int64", 1)
        assert bound.encode(np.array([2**61 + 1], "<i8")).tolist() == [3 * 2**61]
        assert bound.decode(np.array([3 * 2**61], "<i8")).tolist() == [2**61 + 1]
        with pytest.raises(DecodeError, match="multiple"):
            bound.decode(np.array([3 * 2**61 + 1], "<i8"))

    def test_overflow_is_an_error(self):
        bound = bind("scale_offset", {"scale": 1e38}, "float32", 1)
        with pytest.raises(ValueError, match="range"):
            bound.encode(np.array([1e38], "<f4"))
        assert np.isnan(bound.decode(np.array([np.nan], "<f4")))

    @pytest.mark.parametrize("configuration", [{"scale": 0}, {"offset": "x"}, {"scale": None}])
    def test_refusals(self, configuration):
        with pytest.raises(ValueError):
            bind("scale_offset", configuration, "float32", 1)
        with pytest.raises(ValueError, match="cannot scale"):
            bind("scale_offset", {}, "complex64", 1)


class TestBitround:
    """Against the samples in zarr-extensions, codecs/bitround/sample_data."""

    def test_floats(self):
        values = [0.0, 0.1, 1.2, 12.3, 123.4, 1234.5, math.nan, math.inf, -math.inf]
        bound = bind("bitround", {"keepbits": 3}, "float32", 9)
        rounded = bound.encode(np.array(values, "<f4")).tolist()
        assert str(rounded) == str(
            [0.0, 0.1015625, 1.25, 12.0, 120.0, 1280.0, math.nan, math.inf, -math.inf]
        )

    @pytest.mark.parametrize("keepbits", [0, 1, 7, 22, 23])
    def test_as_numcodecs(self, keepbits):
        from numcodecs import BitRound

        values = np.random.default_rng(3).normal(0, 1e3, 500).astype("<f4")
        expected = BitRound(keepbits).encode(values.copy())
        bound = bind("bitround", {"keepbits": keepbits}, "float32", 500)
        assert bound.encode(values).tobytes() == expected.tobytes()

    @pytest.mark.parametrize("keepbits", range(1, 9))
    @pytest.mark.parametrize(("name", "most"), [("int8", 127), ("uint8", 255), ("int32", 2**31)])
    def test_integers(self, name, most, keepbits):
        def rounded(value: int) -> int:
            drop = max(0, abs(value).bit_length() - keepbits)
            near = round(Fraction(abs(value), 1 << drop)) << drop
            size = near if near <= most else abs(value) >> drop << drop
            return -size if value < 0 else size

        values = list(range(most - 255, most + 1) if most < 256 else range(-1000, 1000))
        bound = bind("bitround", {"keepbits": keepbits}, name, len(values))
        chunk = np.array(values, find_data_type(name).dtype)
        assert bound.encode(chunk).tolist() == [rounded(value) for value in values]

    @pytest.mark.parametrize(("keepbits", "name"), [
        (23, "float32"), (24, "float32"), (60, "float64"), (99, "complex64"), (11, "float16"),
    ])  # fmt: skip
    def test_more_bits_than_there_are(self, keepbits, name):
        """numcodecs refuses to write it, and reads it all the same."""
        bound = bind("bitround", {"keepbits": keepbits}, name, 3)
        values = np.array([1.1, -2.3, 1e-3]).astype(find_data_type(name).dtype)
        assert bound.decode(bound.encode(values)).tobytes() == values.tobytes()

    @pytest.mark.parametrize(("keepbits", "name"), [
        (-1, "float32"), (0, "int8"), ("3", "float32"), (3, "bool"), (3, "r16"),
        (1, "float8_e5m2"),
    ])  # fmt: skip
    def test_refusals(self, keepbits, name):
        fill = {"bool": False, "r16": [0, 0]}.get(name, 0)
        with pytest.raises(ValueError):
            bind("bitround", {"keepbits": keepbits}, name, 1, fill)


class TestQuantize:
    @pytest.mark.parametrize(("name", "values"), [
        ("float16", [1, 63.96875, 64, 273.25, -65504]), ("float32", [1, 9.969209968386869e36]),
        ("float64", [1.7976931348623157e308, math.inf, -math.inf]),
    ])  # fmt: skip
    def test_large_numbers_stay(self, name, values):
        """numcodecs makes infinities of them."""
        array = np.array(values, find_data_type(name).dtype)
        configuration = {"digits": 3, "dtype": array.dtype.str}
        bound = bind("numcodecs.quantize", configuration, name, len(values))
        assert bound.decode(bound.encode(array)).tolist() == array.tolist()
        assert math.isnan(bound.encode(np.full_like(array, math.nan))[0])
        for order in "<>":
            of_file = array.astype(array.dtype.newbyteorder(order))
            of_v2 = BufferFilter(
                json.dumps({"id": "quantize", "digits": 3, "dtype": of_file.dtype.str})
            )
            filtered = of_v2.bind(SizeBound(array.nbytes, exact=True))
            assert filtered.encode(of_file.tobytes()) == of_file.tobytes()
            assert filtered.decode(of_file.tobytes(), None) == of_file.tobytes()


class TestPackbits:
    @pytest.mark.parametrize(("name", "values", "packed"), [
        ("bool", [1, 0, 0, 1, 0, 0, 0, 0, 1], "0901"),
        ("int4", [1, -1, 7], "f107"),
        ("uint2", [1, 2, 3, 0, 1], "3901"),
        ("int2", [1, -2, -1, 0], "39"),
        ("float6_e2m3fn", [0x3F, 0x01, 0x20, 0x11], "7f0046"),
        ("uint16", [0x0102, 0x0304], "02010403"),
    ])  # fmt: skip
    def test_bits(self, name, values, packed):
        data_type = find_data_type(name)
        raw = np.array(values, f"<i{data_type.item_size}" if "u" not in name[:1] else None)
        chunk = raw.astype(f"<u{data_type.item_size}").view(data_type.dtype)
        for padding in ("none", "first_byte", "last_byte"):
            bound = bind("packbits", {"padding_encoding": padding}, name, len(values),
                         False if name == "bool" else 0)  # fmt: skip
            bits = {"bool": 1, "uint16": 16}.get(name) or data_type.bits
            unused = bytes([-len(values) * bits % 8])
            expected = bytes.fromhex(packed)
            if padding == "first_byte":
                expected = unused + expected
            elif padding == "last_byte":
                expected += unused
            assert bytes(bound.encode(chunk)) == expected
            assert bound.decode(expected).tobytes() == chunk.tobytes()
            if padding != "none":
                at = 0 if padding == "first_byte" else -1
                damaged = bytearray(expected)
                damaged[at] ^= 1
                with pytest.raises(DecodeError, match="padding"):
                    bound.decode(bytes(damaged))

    def test_complex_parts_are_packed_each(self):
        bound = bind("packbits", {"first_bit": 24, "last_bit": 31}, "complex64", 1)
        data = bound.encode(np.array([complex(2.0, -2.0)], "<c8"))
        assert bytes(data) == b"\x40\xc0"
        assert bound.decode(data).tolist() == [complex(2.0, -2.0)]

    def test_more_elements_than_are_packed_at_once(self):
        chunk = np.random.default_rng(5).integers(-8, 8, 200_001).astype("i1")
        bound = bind("packbits", {}, "int4", chunk.size)
        assert bound.decode(bound.encode(chunk)).tobytes() == chunk.tobytes()

    @pytest.mark.parametrize("configuration", [
        {"first_bit": 3, "last_bit": 2}, {"last_bit": 8}, {"first_bit": 8},
    ])  # fmt: skip
    def test_bits_that_are_not_there(self, configuration):
        with pytest.raises(ValueError, match="bits"):
            bind("packbits", configuration, "uint8", 1)


TIMES = {
    "datetime": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}},
    "timedelta": {"name": "numpy.timedelta64", "configuration": {"unit": "ms", "scale_factor": 1}},
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize(("codec", "configuration"), [
    ("numcodecs.pcodec", {"level": 8}), ("numcodecs.zfpy", {"mode": 4, "tolerance": 0.0}),
    ("zfp", {"mode": "reversible"}),
])  # fmt: skip
def test_times_are_the_integers_that_they_count(codec, configuration, name):
    from numcodecs.registry import get_codec

    data_type = parse_data_type(TIMES[name])
    bound = find_codec(codec)[1](**configuration).bind(
        ChunkSpec((4, 5), data_type, data_type.fill_bytes(0))
    )
    values = (np.arange(20).reshape(4, 5) * 86400).astype(data_type.dtype)
    assert bound.decode(bound.encode(values)).tobytes() == values.tobytes()
    assert bound.decode(bound.encode(values)).dtype == data_type.dtype
    if codec.startswith("numcodecs"):
        other = get_codec({"id": codec.partition(".")[2], **configuration})
        assert bound.decode(bytes(other.encode(values))).tobytes() == values.tobytes()
        assert np.asarray(other.decode(bytes(bound.encode(values)))).tobytes() == values.tobytes()


@pytest.mark.parametrize("name", ["complex64", "complex128", "complex_float16"])
def test_pcodec_has_complex_numbers_as_pairs(name):
    data_type = find_data_type(name)
    bound = find_codec("pcodec")[1]().bind(
        ChunkSpec((3, 4), data_type, data_type.fill_bytes([0, 0]))
    )
    part = data_type.item_size // 2
    values = np.random.default_rng(1).normal(size=24).astype(f"<f{part}")
    chunk = values.view(data_type.dtype).reshape(3, 4)
    assert bound.decode(bound.encode(chunk)).tobytes() == chunk.tobytes()
    pairs = bound.standalone.simple_decompress(bytes(bound.encode(chunk)))
    assert pairs.tobytes() == values.tobytes()


def test_pcodec_has_complex_integers_as_pairs():
    """Radars measure them; Zarr has a structure for them."""
    fields = [{"name": name, "data_type": "int16"} for name in ("real", "imag")]
    data_type = find_data_type("struct", {"fields": fields})
    bound = find_codec("pcodec")[1]().bind(ChunkSpec((3, 4), data_type, bytes(4)))
    values = np.arange(-12, 12).astype("<i2")
    chunk = values.view(data_type.dtype).reshape(3, 4)
    encoded = bytes(bound.encode(chunk))
    assert bound.decode(encoded).tobytes() == chunk.tobytes()
    assert bound.standalone.simple_decompress(encoded).tobytes() == values.tobytes()


class TestZfp:
    @pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "float16", "bfloat16"])
    def test_small_types_are_promoted(self, name):
        data_type = find_data_type(name)
        values = np.arange(64).reshape(4, 4, 4).astype(data_type.dtype)
        codec = find_codec("zfp")[1](mode="reversible")
        bound = codec.bind(ChunkSpec((4, 4, 4), data_type, data_type.fill_bytes(0)))
        assert bound.decode(bound.encode(values)).tobytes() == values.tobytes()
        if data_type.dtype.kind in "iu":
            # As zfp_promote_int8_to_int32 and its like.
            bits = 8 * data_type.item_size
            middle = 1 << bits - 1 if data_type.dtype.kind == "u" else 0
            wide = codec.bind(ChunkSpec((4, 4, 4), find_data_type("int32"), bytes(4)))
            promoted = (values.astype("<i4") - middle) << 31 - bits
            assert bytes(bound.encode(values)) == bytes(wide.encode(promoted))

    @pytest.mark.parametrize(("name", "most"), [("uint32", 2**31 - 1), ("uint64", 2**63 - 1)])
    def test_unsigned_types_keep_their_value(self, name, most):
        codec = find_codec("zfp")[1](mode="reversible")
        data_type = find_data_type(name)
        bound = codec.bind(ChunkSpec((4,), data_type, data_type.fill_bytes(0)))
        values = np.array([0, 1, 5, most], data_type.dtype)
        assert bound.decode(bound.encode(values)).tolist() == values.tolist()
        with pytest.raises(ValueError, match="too large"):
            bound.encode(values + 1)

    @pytest.mark.parametrize(("mode", "parameter"), [
        ("fixed_rate", {"rate": 12}), ("fixed_precision", {"precision": 20}),
        ("fixed_accuracy", {"tolerance": 0.01}),
    ])  # fmt: skip
    def test_lossy_modes_are_those_of_zfpy(self, mode, parameter):
        import zfpy

        values = np.random.default_rng(1).normal(0, 1, (5, 6)).astype("<f4")
        bound = find_codec("zfp")[1](mode=mode, **parameter).bind(
            ChunkSpec((5, 6), find_data_type("float32"), bytes(4))
        )
        with_header = zfpy.compress_numpy(values, write_header=True, **parameter)
        expected = zfpy.decompress_numpy(with_header)
        assert bound.decode(bound.encode(values)).tobytes() == expected.tobytes()


@pytest.mark.parametrize(("codec", "package", "extra"), [
    ({"name": "zfp", "configuration": {"mode": "reversible"}}, "zfpy", "zfp"),
    ({"name": "numcodecs.zfpy", "configuration": {"mode": 5}}, "zfpy", "zfp"),
    ({"name": "numcodecs.pcodec"}, "numcodecs.pcodec", "pcodec"),
])  # fmt: skip
def test_an_optional_package_that_is_missing_is_named(monkeypatch, parse, codec, package, extra):
    import sys

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MetadataError, match=rf"install '\.\[{extra}\]'") as caught:
        parse(data_type="float32", codecs=[codec])
    assert type(caught.value).__name__ == "UnsupportedError"
