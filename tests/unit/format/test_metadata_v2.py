"""``.zarray`` and the other documents of v2, and ``meta`` and ``attrs`` of v1."""

import base64
import json
import zlib

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from zarrfs.errors import DecodeError, MetadataError, UnsupportedError
from zarrfs.format.metadata.documents import DOCUMENTS
from zarrfs.format.metadata.older.v1 import parse_array_v1
from zarrfs.format.metadata.older.v2 import (
    parse_array_v2,
    read_array_v2,
    read_consolidated_v2,
    read_group_v2,
)


def zarray(**members):
    """A small valid document with some members replaced; ... removes one."""
    document = {
        "zarr_format": 2,
        "shape": [5, 7],
        "chunks": [2, 3],
        "dtype": "<i2",
        "compressor": None,
        "fill_value": 0,
        "order": "C",
        "filters": None,
    }
    document.update(members)
    return {key: value for key, value in document.items() if value is not ...}


def parse(attributes=None, **members):
    return parse_array_v2(
        json.dumps(zarray(**members)).encode(),
        None if attributes is None else json.dumps(attributes).encode(),
    )


def decode(array, data):
    return array.layout.chunk_codec(array.layout.read.largest_chunk).decode(data)


class TestLeniency:
    """The list of what zarrfs reads and others refuse."""

    @pytest.mark.parametrize(("dtype", "size"), [
        ("<f4", 4), ("|b1", 1), ("<U3", 12), ("|S3", 3), ("<c8", 8), ("|V5", 5),
        ([["a", "<i2"], ["b", "|S1"]], 3),
    ])  # fmt: skip
    def test_null_fill_is_zeros(self, dtype, size):
        assert parse(dtype=dtype, fill_value=None).layout.fill == bytes(size)

    @pytest.mark.parametrize("dtype", ["<M8[s]", ">M8[ns]", "<m8[ms]"])
    def test_null_fill_of_a_time_is_none(self, dtype):
        """As zarr-python 3 has it."""
        fill = parse(dtype=dtype, fill_value=None).layout.fill
        assert np.isnat(np.frombuffer(fill, np.dtype(dtype).newbyteorder("<")))[0]

    @pytest.mark.parametrize(("dtype", "fill", "value"), [
        ("<f4", "0", 0), ("<f4", "1.5", 1.5), (">f8", "-2e3", -2000), ("<f2", " 1", 1),
        ("<f4", "nan", np.nan), ("<f8", "NAN", np.nan), ("<f4", "inf", np.inf),
        ("<f4", "-inf", -np.inf), ("<f8", "+Infinity", np.inf), ("<i2", "0", 0), (">i4", "-7", -7),
        ("|u1", "255", 255), ("|u1", 255.0, 255), ("<c8", ["1.5", "nan"], complex(1.5, np.nan)),
    ])  # fmt: skip
    def test_a_number_as_text(self, dtype, fill, value):
        stored = np.frombuffer(parse(dtype=dtype, fill_value=fill).layout.fill,
                               np.dtype(dtype).newbyteorder("<"))  # fmt: skip
        assert stored.tobytes() == np.array([value], stored.dtype).tobytes()

    @pytest.mark.parametrize(("dtype", "fill"), [
        ("<f4", "0x1"), ("<f4", "one"), ("<f4", "-nan"), ("<f4", "1_0"), ("<i2", "1.5"),
        ("<i2", "70000"), ("<i2", "9" * 5000), ("<f4", "9" * 5000), ("|b1", "0"), ("|b1", "false"),
        ("|b1", 2),
    ])  # fmt: skip
    def test_text_that_is_no_number_or_not_the_same_to_everybody(self, dtype, fill):
        with pytest.raises(MetadataError, match="fill_value"):
            parse(dtype=dtype, fill_value=fill)

    @pytest.mark.parametrize("compressor", [{}, {"level": 1}, "zlib", 1])
    def test_a_compressor_that_is_none_is_called_by_its_name(self, compressor):
        with pytest.raises(MetadataError, match=r"^\.zarray: compressor: .* is not a codec"):
            parse(compressor=compressor)

    @pytest.mark.parametrize("fill", [0, "", 0.0, False])
    @pytest.mark.parametrize(("dtype", "size"), [("<U3", 12), (">U3", 12), ("|S3", 3), ("|V3", 3)])
    def test_zero_for_text(self, dtype, size, fill):
        assert parse(dtype=dtype, fill_value=fill).layout.fill == bytes(size)

    @pytest.mark.parametrize(("fill", "stored"), [(0, 0), (1, 1), (False, 0), (True, 1), (0.0, 0)])
    def test_bool_with_a_number(self, fill, stored):
        assert parse(dtype="|b1", fill_value=fill).layout.fill == bytes([stored])

    @pytest.mark.parametrize("dtype", ["<u1", ">u1", "=u1", "|u1"])
    def test_a_byte_order_of_one_byte(self, dtype):
        assert parse(dtype=dtype).layout.data_type.name == "uint8"

    @pytest.mark.parametrize("dtype", ["<f4", ">f8"])
    def test_bare_nan(self, dtype):
        array = parse(dtype=dtype, fill_value=float("nan"), attributes={"a": float("nan")})
        assert np.isnan(array.layout.data_type.element(array.layout.fill))

    @pytest.mark.parametrize("fill", ["NaN", "Infinity", "-Infinity"])
    def test_named_floats(self, fill):
        array = parse(dtype=">f4", fill_value=fill)
        assert str(float(array.layout.data_type.element(array.layout.fill))) == str(float(fill))

    @pytest.mark.parametrize("members", [
        {"filters": ..., "compressor": ...}, {"filters": []}, {"filters": ...}, {"compressor": ...},
    ])  # fmt: skip
    def test_missing_or_empty_filters_and_compressor(self, members):
        assert decode(parse(**members), bytes(12)).shape == (2, 3)

    def test_extra_members(self):
        parse(node_type="array", comment={"x": 1})

    def test_a_checksum_key_in_zstd(self):
        array = parse(compressor={"id": "zstd", "level": 1, "checksum": True})
        data = numcodecs.zstd.compress(bytes(12), 1, True)
        assert decode(array, data).tolist() == [[0] * 3] * 2

    @pytest.mark.parametrize("fill", [[1.0, -0.0], base64.b64encode(
        np.array([1.0, -0.0], "<f4").tobytes()).decode()])  # fmt: skip
    def test_complex_fill(self, fill):
        array = parse(dtype="<c8", fill_value=fill)
        assert array.layout.fill.hex() == "0000803f00000080"

    def test_complex_fill_is_in_stored_byte_order(self):
        raw = np.array([1.0, -0.0], ">f4").tobytes()
        array = parse(dtype=">c8", fill_value=base64.b64encode(raw).decode())
        assert array.layout.fill.hex() == "0000803f00000080"

    def test_nested_structs_and_subarrays(self):
        dtype = [
            ["p", [["x", ">f4"], ["y", "<i2", [2]]]],
            ["s", "|S2"],
            ["m", ">i2", [2, 2]],
        ]
        stored = np.dtype(
            [("p", [("x", ">f4"), ("y", "<i2", (2,))]), ("s", "S2"), ("m", ">i2", (2, 2))]
        )
        value = np.zeros(1, stored)
        value[0] = ((1.5, [1, 2]), b"ab", [[1, 2], [3, 4]])
        fill = base64.b64encode(value.tobytes()).decode()
        array = parse(shape=[3], chunks=[2], dtype=dtype, fill_value=fill)
        little = value.astype(stored.newbyteorder("<"))
        assert array.layout.fill == little.tobytes()
        chunk = decode(array, value.tobytes() * 2)
        assert chunk.tobytes() == little.tobytes() * 2
        codec = array.layout.chunk_codec((2,))
        assert bytes(codec.encode(chunk)) == value.tobytes() * 2

    def test_order_f_with_filters_that_see_the_ravel(self):
        array = parse(order="F", filters=[{"id": "delta", "dtype": "<i2"}])
        data = np.array([1, 1, 1, 1, 1, 1], "<i2").tobytes()
        assert decode(array, data).tolist() == [[1, 3, 5], [2, 4, 6]]

    @pytest.mark.parametrize("codec", ["adler32", "crc32", "fletcher32", "crc32c"])
    def test_a_checksum_as_compressor(self, codec):
        array = parse(compressor={"id": codec})
        data = bytes(numcodecs.get_codec({"id": codec}).encode(np.ones(12, "u1")))
        assert decode(array, data).tolist() == [[257] * 3] * 2
        with pytest.raises(DecodeError):
            decode(array, bytes(4) + data[4:])

    def test_text_fill_that_is_no_base64(self):
        assert parse(dtype="|S5", fill_value="a b").layout.fill == b"a b\0\0"
        assert parse(dtype="|S5", fill_value="YSBi").layout.fill == b"a b\0\0"

    def test_times(self):
        assert parse(dtype="<M8[D]", fill_value="NaT").layout.fill == bytes(7) + b"\x80"
        assert parse(dtype=">m8[s]", fill_value=2).layout.fill == b"\2" + bytes(7)
        assert parse(dtype="<M8[D]", fill_value="1970-01-03").layout.fill == b"\2" + bytes(7)

    def test_zero_length_axes(self):
        array = parse(shape=[0, 7], chunks=[0, 3])
        assert (array.layout.read.chunks, array.nbytes) == (0, 0)


class TestDocuments:
    def test_keys_and_names(self):
        attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "a": 1}
        array = parse(attributes, dimension_separator="/")
        assert array.chunk_keys.key((1, 2)) == "1/2"
        assert array.dimension_names == ("y", "x")
        assert array.attributes["a"] == 1
        assert array.zarr_format == 2
        assert parse().chunk_keys.key((1, 2)) == "1.2"
        assert parse(shape=[], chunks=[]).chunk_keys.key(()) == "0"
        assert parse({"_ARRAY_DIMENSIONS": ["y"]}).dimension_names == ()

    def test_groups(self):
        group = read_group_v2({"zarr_format": 2}, {"a": 1})
        assert (group.zarr_format, group.attributes["a"], group.children) == (2, 1, None)
        with pytest.raises(MetadataError, match="zgroup"):
            read_group_v2({"zarr_format": 3}, None)
        with pytest.raises(MetadataError, match="zattrs"):
            read_group_v2({"zarr_format": 2}, [])

    def test_consolidated(self):
        nodes = read_consolidated_v2(
            {
                "zarr_consolidated_format": 1,
                "metadata": {
                    ".zgroup": {"zarr_format": 2},
                    "a/b/.zarray": zarray(),
                    "a/b/.zattrs": {"x": 1},
                    "a/.zgroup": {"zarr_format": 2},
                },
            }
        )
        assert set(nodes) == {"", "a", "a/b"}
        assert set(nodes["a/b"]) == set(DOCUMENTS[2]) - {".zgroup", ".zmetadata"}
        array = read_array_v2(nodes["a/b"][".zarray"], nodes["a/b"][".zattrs"])
        assert (array.shape, array.attributes["x"]) == ((5, 7), 1)
        assert read_group_v2({"zarr_format": 2}, None, nodes).children == nodes
        for wrong in ([], {}, {"metadata": 1}):
            with pytest.raises(MetadataError, match="zmetadata"):
                read_consolidated_v2(wrong)


class TestRefusals:
    @pytest.mark.parametrize(("members", "says"), [
        ({"dtype": "|O", "filters": [{"id": "pickle"}]}, "run code"),
        ({"dtype": "|O", "filters": None, "compressor": {"id": "pickle"}}, "run code"),
        ({"filters": [{"id": "pickle"}]}, "run code"),
        ({"dtype": "|O"}, "no codec"),
        ({"dtype": "|O", "filters": [{"id": "zlib"}]}, "zlib"),
        ({"compressor": {"id": "no-such-codec"}}, "no-such-codec"),
        ({"dtype": "|S0"}, "no bytes"),
        ({"shape": [2**40, 2**40]}, "8 EiB"),
        ({"shape": [1] * 33, "chunks": [1] * 33}, "33 axes"),
    ])  # fmt: skip
    def test_unsupported(self, members, says):
        with pytest.raises(UnsupportedError, match=says):
            parse(**members)

    @pytest.mark.parametrize(("members", "says"), [
        ({"zarr_format": 1}, "zarr_format"),
        ({"shape": ...}, "shape"),
        ({"shape": [-1, 2]}, "shape"),
        ({"shape": [1.5, 2]}, "shape"),
        ({"shape": [1]}, "axes"),
        ({"chunks": [0, 3]}, "no elements"),
        ({"chunks": True}, "chunks"),
        ({"dtype": ...}, "dtype"),
        ({"dtype": "float32"}, "dtype"),
        ({"dtype": "<i3"}, "dtype"),
        ({"dtype": "i2,i2"}, "dtype"),
        ({"dtype": "<f16"}, "dtype"),
        ({"dtype": []}, "dtype"),
        ({"dtype": [["a"]]}, "dtype"),
        ({"dtype": [["a", "<i2"], ["a", "<i2"]]}, "dtype"),
        ({"dtype": [["a", "|O"]]}, "dtype"),
        ({"dtype": [["a", "<i2", [-1]]]}, "shape"),
        ({"order": "K"}, "order"),
        ({"order": ...}, "order"),
        ({"dimension_separator": "-"}, "dimension_separator"),
        ({"filters": {}}, "filters"),
        ({"filters": [5]}, "codec"),
        ({"compressor": "zlib"}, "codec"),
        ({"compressor": {"id": "zlib", "speed": 1}}, "zlib"),
        ({"filters": [{"id": "delta"}]}, "delta"),
        ({"filters": [{"id": "delta", "dtype": "<i8"}]}, "delta"),
        ({"filters": [{"id": "delta", "dtype": "|O"}]}, "delta"),
        ({"fill_value": "x"}, "fill_value"),
        ({"fill_value": 40000}, "fill_value"),
        ({"fill_value": ..., "dtype": "|S3", "zarr_format": None}, "zarr_format"),
        ({"dtype": "<c8", "fill_value": "AAAA"}, "fill_value"),
        ({"dtype": "<U2", "fill_value": "abc"}, "fill_value"),
    ])  # fmt: skip
    def test_malformed(self, members, says):
        with pytest.raises(MetadataError, match=says):
            parse(**members)


class TestObjects:
    VALUES = np.array([["a", "bc"], ["", "ä"]], object)

    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize("id_", ["vlen-utf8", "json2", "msgpack2", "categorize"])
    def test_strings(self, id_, order):
        configuration = {"id": id_}
        if id_ == "categorize":
            configuration |= {"labels": ["a", "bc", "ä"], "dtype": "|O", "astype": "|u1"}
        array = parse(
            shape=[2, 2], chunks=[2, 2], dtype="|O", filters=[configuration], fill_value="",
            order=order, compressor={"id": "zlib", "level": 1},
        )  # fmt: skip
        codec = array.layout.chunk_codec((2, 2))
        laid_out = self.VALUES.T if order == "F" else self.VALUES
        data = numcodecs.get_codec(configuration).encode(np.ascontiguousarray(laid_out))
        assert codec.decode(zlib.compress(bytes(data))).tolist() == self.VALUES.tolist()
        assert codec.decode(bytes(codec.encode(self.VALUES))).tolist() == self.VALUES.tolist()

    @pytest.mark.parametrize("id_", ["json2", "msgpack2"])
    def test_any_json(self, id_):
        values = np.empty(3, object)
        values[:] = [[1, 2], {"a": None}, 1.5]
        array = parse(shape=[3], chunks=[3], dtype="|O", filters=[{"id": id_}], fill_value=None)
        data = numcodecs.get_codec({"id": id_}).encode(values)
        assert decode(array, data).tolist() == values.tolist()
        assert array.layout.spec((2,)).filled().tolist() == [None, None]

    def test_arrays(self):
        values = np.empty(2, object)
        values[0], values[1] = np.array([1, 2, 3], "<i2"), np.array([], "<i2")
        configuration = {"id": "vlen-array", "dtype": "<i2"}
        array = parse(shape=[2], chunks=[2], dtype="|O", filters=[configuration], fill_value=None)
        data = numcodecs.get_codec(configuration).encode(values)
        codec = array.layout.chunk_codec((2,))
        assert codec.decode(bytes(data)).tolist() == [[1, 2, 3], []]
        assert bytes(codec.encode(codec.decode(bytes(data)))) == bytes(data)

    def test_bytes(self):
        array = parse(shape=[2], chunks=[2], dtype="|O", filters=[{"id": "vlen-bytes"}])
        data = numcodecs.VLenBytes().encode(np.array([b"\xff", b""], object))
        assert decode(array, bytes(data)).tolist() == [b"\xff", b""]

    @pytest.mark.parametrize("data", [
        b"", b"[]", b"{}", b'["a","|O",[1000000000000]]', b'["a","b","|O",[3]]', b"[" * 100_000,
        b'["a","|O",3]', b'["a","b","c","|O",[3], ', b'[[1],"|O",[1,3]]', b'["a","|O",["x"]]',
    ])  # fmt: skip
    def test_json_that_is_no_chunk(self, data):
        array = parse(shape=[3], chunks=[3], dtype="|O", filters=[{"id": "json2"}])
        with pytest.raises(DecodeError):
            decode(array, data)

    def test_categories_of_fixed_text(self):
        configuration = {"id": "categorize", "labels": ["a", "bc"], "dtype": "<U2", "astype": "|u1"}
        array = parse(shape=[3], chunks=[3], dtype="<U2", filters=[configuration], fill_value="")
        assert decode(array, b"\2\0\1").tolist() == ["bc", "", "a"]


@pytest.mark.parametrize("filters", [
    [{"id": "shuffle", "elementsize": 2}, {"id": "delta", "dtype": "<i2"}],
    [{"id": "delta", "dtype": "<i2", "astype": "<i4"}, {"id": "shuffle", "elementsize": 4}],
    [{"id": "base64"}],
    [{"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i2"}, {"id": "crc32"}],
    [{"id": "fixedscaleoffset", "scale": 1, "offset": 5, "dtype": "<i2", "astype": "<i4"}],
    [{"id": "delta", "dtype": "<i2"}, {"id": "pcodec"}],
])  # fmt: skip
def test_chains_of_filters(filters):
    """Against numcodecs run one after another, as zarr-python 2 does."""
    array = parse(filters=filters, compressor={"id": "zlib", "level": 1})
    chunk = np.array([[1, -5, 700], [3, 3, -32000]], "<i2")
    data = chunk
    for filter_ in [*filters, {"id": "zlib", "level": 1}]:
        data = numcodecs.get_codec(dict(filter_)).encode(data)
    codec = array.layout.chunk_codec((2, 3))
    assert codec.decode(bytes(data)).tolist() == chunk.tolist()
    assert codec.decode(bytes(codec.encode(chunk))).tolist() == chunk.tolist()
    with pytest.raises(DecodeError):
        codec.decode(zlib.compress(b"\0"))


@pytest.mark.parametrize("filters", [
    [{"id": "delta", "dtype": "<i2", "astype": []}, {"id": "shuffle"}],
    [{"id": "shuffle"}, {"id": "delta", "dtype": "<i2", "astype": {}}],
    [{"id": "shuffle"}, {"id": "fixedscaleoffset", "dtype": "<i2", "offset": 0, "scale": 1,
                         "astype": []}],
    [{"id": "shuffle"}, {"id": "astype", "encode_dtype": None, "decode_dtype": "<i2"}],
])  # fmt: skip
def test_types_of_filters_are_names(filters):
    """numpy makes a type without bytes of [], and float64 of None."""
    with pytest.raises(MetadataError, match=r"(astype|encode_dtype) is "):
        parse(filters=filters)


@pytest.mark.parametrize("filter_", [
    {"id": "delta"}, {"id": "fixedscaleoffset", "offset": 0, "scale": 1},
    {"id": "quantize", "digits": 2}, {"id": "astype", "encode_dtype": "<i4"},
])  # fmt: skip
def test_a_filter_without_a_type_lacks_it(filter_):
    for filters in ([filter_], [{"id": "shuffle"}, filter_], [filter_, {"id": "shuffle"}]):
        with pytest.raises(MetadataError, match=r"it lacks '(decode_)?dtype'$"):
            parse(filters=filters)


def meta(**members):
    document = {
        "zarr_format": 1, "shape": [4], "chunks": [2], "dtype": "<i2", "compression": None,
        "compression_opts": None, "fill_value": 0, "order": "C",
    }  # fmt: skip
    return json.dumps({**document, **members}).encode()


class TestV1:
    @pytest.mark.parametrize("order", ["C", "F"])
    @pytest.mark.parametrize(("compression", "options"), [
        (None, None), ("none", None), ("zlib", 1), ("gzip", 9), ("zlib", None), ("bz2", 1),
        ("lzma", {"format": 1, "check": -1, "preset": 1, "filters": None}), ("lzma", None),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}),
    ])  # fmt: skip
    def test_order_counts_with_blosc_only(self, compression, options, order):
        array = parse_array_v1(
            meta(shape=[2, 3], chunks=[2, 3], compression=compression, compression_opts=options,
                 order=order), b'{"a": 1}',
        )  # fmt: skip
        codec = array.layout.chunk_codec((2, 3))
        follows = order == "F" and compression == "blosc"
        raw = np.arange(6, dtype="<i2").tobytes()
        name = {"gzip": "zlib", "none": None}.get(compression, compression)
        data = raw if name is None else numcodecs.get_codec({"id": name}).encode(raw)
        expected = np.arange(6).reshape(2, 3, order="F" if follows else "C")
        assert codec.decode(bytes(data)).tolist() == expected.tolist()
        assert array.attributes == {"a": 1}
        assert array.chunk_keys.key((1, 2)) == "1.2"

    def test_bare_nan(self):
        array = parse_array_v1(meta(dtype="<f4", fill_value=float("nan")), None)
        assert array.layout.fill.hex() == "0000c07f"

    @pytest.mark.parametrize(("members", "error"), [
        ({"compression": "snappy"}, UnsupportedError),
        ({"compression": "zlib", "compression_opts": {}}, MetadataError),
        ({"compression": 5}, UnsupportedError),
        ({"zarr_format": 2}, MetadataError),
        ({"shape": None}, MetadataError),
        ({"dtype": "|O"}, UnsupportedError),
    ])  # fmt: skip
    def test_refusals(self, members, error):
        with pytest.raises(error, match="meta"):
            parse_array_v1(meta(**members), None)

    def test_what_is_no_json(self):
        with pytest.raises(MetadataError, match="meta"):
            parse_array_v1(b"\x80", None)
        with pytest.raises(MetadataError, match="attrs"):
            parse_array_v1(meta(), b"[]")


SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
    | st.sampled_from(["", "<i2", "zlib", "NaN", "AAAA", "F", "|O", "\ud800", "<M8[99999999s]"])
)  # fmt: skip
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "dtype", "level", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)
WHOLE = zarray(
    filters=[{"id": "delta", "dtype": "<i2", "astype": "<i4"}, {"id": "shuffle", "elementsize": 4}],
    compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
)


@examples(250)
@given(member=st.sampled_from(sorted(WHOLE)), new=JSON, inner=st.sampled_from(["id", "dtype"]))
def test_a_changed_document_is_read_or_refused_and_nothing_else(member, new, inner):
    changed = new
    if isinstance(WHOLE[member], dict):
        changed = {**WHOLE[member], inner: new}
    try:
        read_array_v2({**WHOLE, member: changed}, None)
    except MetadataError as error:
        assert "\n" not in str(error)  # noqa: PT017 -- reading it is just as right


@pytest.mark.parametrize(("codec", "data"), [
    ("json", b'[["a", 1], [null, [2]], "|O"]'),
    ("msgpack", b"\x93\x92\xa1a\x01\x92\xc0\x91\x02\xa2|O"),
])  # fmt: skip
def test_objects_as_numcodecs_first_stored_them(codec, data):
    """They have a dtype behind them, and no shape."""
    array = parse(
        dtype="|O", fill_value=None, shape=[2, 2], chunks=[2, 2], filters=[{"id": codec}],
        compressor=None,
    )  # fmt: skip
    bound = array.layout.chunk_codec((2, 2))
    values = [["a", 1], [None, [2]]]
    assert bound.decode(data).tolist() == values
    assert bound.decode(bytes(bound.encode(bound.decode(data)))).tolist() == values
    for damaged in (b"", data[:-1], b"[1, 2]", b'[["a"], "|O"]', b"\x91\x91\xc0"):
        with pytest.raises(DecodeError):
            bound.decode(damaged)
