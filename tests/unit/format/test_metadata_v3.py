"""``zarr.json``: what is accepted, what is refused, and that nothing else ever happens."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.node import GroupMetadata
from zarrfs.format.metadata.v3 import parse_node


class TestLeniency:
    """The rows of the table "Leniency in the wild"."""

    def test_shorthand_codec_names(self, parse):
        array = parse(codecs=["bytes", "crc32c"], data_type="uint8")
        assert array.layout.chunk_codec((2, 3)).encoded.maximum == 2 * 3 + 4

    def test_must_understand_true_in_a_codec(self, parse):
        codec = {"name": "bytes", "configuration": {"endian": "little"}, "must_understand": True}
        assert parse(codecs=[codec]).layout.data_type.name == "int16"

    def test_null_attributes_and_dimension_names(self, parse):
        array = parse(attributes=None, dimension_names=None)
        assert (dict(array.attributes), array.dimension_names) == ({}, ())

    def test_no_endian_means_little(self, parse):
        array = parse(codecs=[{"name": "bytes"}])
        assert array.layout.chunk_codec((1,)).decode(b"\1\0").tolist() == [1]

    def test_no_endian_inside_a_shard_means_little(self, parse):
        sharding = {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [1, 3], "codecs": ["bytes"], "index_codecs": ["bytes", "crc32c"],
            },
        }  # fmt: skip
        array = parse(codecs=[sharding])
        assert array.layout.chunk_codec((1, 3)).decode(bytes([1, 0] * 3)).tolist() == [[1, 1, 1]]

    @pytest.mark.parametrize(("order", "stored"), [("C", [0, 1, 2, 3]), ("F", [0, 2, 1, 3])])
    def test_transpose_by_letter(self, parse, order, stored):
        array = parse(codecs=[{"name": "transpose", "configuration": {"order": order}}, "bytes"])
        chunk = array.layout.chunk_codec((2, 2)).decode(np.arange(4, dtype="<i2").tobytes())
        assert chunk.ravel().tolist() == stored

    def test_bare_nan_literal(self, document):
        text = json.dumps(
            document(data_type="float32", fill_value=float("nan"), attributes={"a": [float("nan")]})
        )
        array = parse_node(load_json(text.encode(), "zarr.json"))
        assert array.layout.fill == bytes.fromhex("0000c07f")
        assert np.isnan(array.attributes["a"][0])

    def test_whole_float_for_an_integer(self, parse):
        assert parse(fill_value=3.0).layout.fill == b"\3\0"

    @pytest.mark.parametrize(("data_type", "fill", "same"), [
        ("int16", "0", 0), ("int16", " -7", -7), ("uint8", True, 1), ("bool", 0, False),
        ("bool", 1, True), ("float32", "nan", "NaN"), ("float64", "-inf", "-Infinity"),
        ("float16", "+Infinity", "Infinity"), ("float32", "1.5", 1.5), ("bfloat16", "2", 2),
        ("complex64", "1.5", [1.5, 0]), ("complex128", ["nan", "1"], ["NaN", 1]),
        ("complex_float16", ["inf", 0], ["Infinity", 0]), ("int4", "-8", -8),
    ])  # fmt: skip
    def test_fill_values_in_other_spellings(self, parse, data_type, fill, same):
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        spelled, plain = (
            parse(data_type=data_type, fill_value=value, codecs=codecs).layout.fill
            for value in (fill, same)
        )
        assert spelled == plain

    @pytest.mark.parametrize("data_type", ["bool", "int32", "uint8", "float32", "complex64"])
    def test_null_as_gdal_writes_it_is_zero(self, parse, data_type):
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        array = parse(data_type=data_type, fill_value=None, codecs=codecs)
        assert array.layout.fill == bytes(array.layout.data_type.item_size)
        assert not array.has_fill
        assert array.summary["fill_value"] is None
        assert parse().has_fill

    @pytest.mark.parametrize(("data_type", "fill"), [
        ("bool", "0"), ("bool", "false"), ("bool", 2), ("int16", "1.5"),
        ("float32", "0x1"), ("float32", "-nan"), ("float32", "1_0"),
    ])  # fmt: skip
    def test_a_fill_value_that_is_not_the_same_to_everybody(self, parse, data_type, fill):
        with pytest.raises(MetadataError, match="fill_value"):
            parse(data_type=data_type, fill_value=fill)

    @pytest.mark.parametrize("change", [
        {"storage_transformers": None}, {"storage_transformers": {}}, {"zarr_format": 3.0},
        {"data_type": {"name": "int16", "configuration": None}},
        {"data_type": {"name": "int16", "must_understand": False}},
        {"codecs": [{"name": "bytes", "configuration": {"endian": None}}]},
        {"codecs": [{"name": "bytes", "configuration": None}]},
        {"codecs": ["bytes", {"name": "blosc", "configuration": {}}]},
        {"codecs": ["bytes", {"name": "blosc", "configuration": {
            "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}}]},
        {"codecs": ["bytes", "gzip"]},
        {"codecs": ["bytes", {"name": "zstd", "configuration": {"level": 1.0}}]},
        {"codecs": ["bytes", {"name": "numcodecs.zlib", "configuration": {
            "id": "zlib", "level": 1}}]},
    ])  # fmt: skip
    def test_what_can_mean_only_one_thing(self, parse, change):
        layout = parse(**change).layout
        elements = np.arange(6, dtype="<i2").reshape(2, 3)
        codec = layout.chunk_codec((2, 3))
        assert codec.decode(bytes(codec.encode(elements))).tolist() == elements.tolist()

    def test_blosc_without_typesize_shuffles_elements(self, parse):
        array = parse(codecs=["bytes", {"name": "blosc", "configuration": {"cname": "lz4"}}])
        assert array.summary["codecs"][1]["configuration"]["typesize"] == 2

    @pytest.mark.parametrize("codec", [
        {"name": "novelty", "must_understand": False},
        {"name": "numcodecs.zlib", "configuration": {"id": "gzip", "level": 1}},
        {"name": "gzip", "configuration": {"level": 1, "other": 1}},
    ])  # fmt: skip
    def test_a_codec_that_may_mean_something_else(self, parse, codec):
        with pytest.raises(MetadataError):
            parse(codecs=["bytes", codec])

    def test_unknown_member_that_need_not_be_understood(self, parse):
        parse(**{"x-y": {"must_understand": False, "name": "whatever"}})

    @pytest.mark.parametrize("value", [1, "text", {"name": "x"}, {"must_understand": True}])
    def test_unknown_member_that_must_be_understood(self, parse, value):
        with pytest.raises(UnsupportedError, match="novel"):
            parse(novel=value)

    def test_an_infinity_with_a_sign_as_the_specification_of_cast_value_has_it(self, parse):
        scalar_map = {"encode": [["NaN", 0], ["+Infinity", 0]], "decode": [[0, "NaN"]]}
        cast = {"name": "cast_value", "configuration": {
            "data_type": "uint8", "scalar_map": scalar_map}}  # fmt: skip
        array = parse(data_type="float64", fill_value="NaN", codecs=[cast, "bytes"])
        assert bytes(array.layout.chunk_codec((1,)).encode(np.array([np.inf]))) == b"\0"


class TestRefusals:
    @pytest.mark.parametrize(("members", "says"), [
        ({"storage_transformers": [{"name": "chunk-manifest-json"}]}, "chunk-manifest-json"),
        ({"data_type": "float128"}, "float128"),
        ({"codecs": [{"name": "endian", "configuration": {"endian": "little"}}]}, "endian"),
        ({"codecs": ["bytes", {"name": "no-such-codec"}]}, "no-such-codec"),
        ({"chunk_grid": {"name": "hexagonal"}}, "hexagonal"),
        ({"chunk_key_encoding": {"name": "spiral"}}, "spiral"),
        ({"shape": [1] * 33, "chunk_grid": {"name": "regular", "configuration":
          {"chunk_shape": [1] * 33}}}, "33 axes"),
        ({"shape": [2**40, 2**40]}, "8 EiB"),
        ({"codecs": [{"name": "numcodecs.pickle"}]}, "pickle"),
    ])  # fmt: skip
    def test_unsupported(self, parse, members, says):
        with pytest.raises(UnsupportedError, match=says):
            parse(**members)

    @pytest.mark.parametrize(("members", "says"), [
        ({"codecs": []}, "codecs"),
        ({"codecs": ["crc32c"]}, "array -> bytes|codecs"),
        ({"codecs": ["bytes", "bytes"]}, "codecs|array -> bytes"),
        ({"codecs": [{"name": "gzip", "configuration": {"level": "high"}}]}, "gzip|level|codecs"),
        ({"codecs": [{"name": "bytes", "configuration": {"endian": "middle"}}]}, "endian"),
        ({"codecs": ["crc32c", "bytes"]}, "codecs|order"),
        ({"shape": [-1, 2]}, "shape"),
        ({"shape": [True, 2]}, "shape"),
        ({"shape": "big"}, "shape"),
        ({"dimension_names": ["x"]}, "dimension_names"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}, "chunk"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}}, "chunk"),
        ({"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "-"}}}, "separator"),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [0, 0]}}, "bytes"]}, "order"),
        ({"codecs": [{"name": "transpose", "configuration": {"order": [0]}}, "bytes"]}, "order"),
        ({"zarr_format": 4}, "zarr_format"),
        ({"node_type": "tree"}, "node_type"),
        ({"codecs": [{"name": "bytes", "configuration": {"endian": "big", "swapped": None}}]},
         "swapped"),
        ({"codecs": ["bytes", {"name": "zstd", "configuration": {"dictionary": None}}]},
         "dictionary"),
        ({"shape": [0, 2],
          "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [False, 2]}}},
         "chunk"),
        ({"data_type": "string", "codecs": ["vlen-utf8"], "fill_value": 6}, "fill_value"),
        ({"data_type": "string", "codecs": ["vlen-utf8"], "fill_value": 0}, "fill_value"),
    ])  # fmt: skip
    def test_malformed(self, parse, members, says):
        with pytest.raises(MetadataError, match=says):
            parse(**members)

    @pytest.mark.parametrize("text", [
        b"", b"{", b"\xff\xfe", b"nope", b'{"a": 1', b"[" * 100_000, b'{"a":' * 100_000,
        b'"\\ud800', b"1" * 10_000,
    ])  # fmt: skip
    def test_what_is_no_json(self, text):
        with pytest.raises(MetadataError, match=r"zarr\.json"):
            parse_node(load_json(text, "zarr.json"))

    def test_deep_nesting_that_is_json(self, document):
        deep: object = 0
        for _ in range(50_000):
            deep = [deep]
        for member in ("attributes", "codecs", "fill_value", "novel"):
            with pytest.raises(MetadataError):
                parse_node(document(**{member: deep}))

    def test_deeply_nested_shards(self, document):
        codecs: list[object] = ["bytes"]
        for _ in range(3000):
            configuration = {
                "chunk_shape": [1, 1], "codecs": codecs, "index_codecs": ["bytes"],
            }  # fmt: skip
            codecs = [{"name": "sharding_indexed", "configuration": configuration}]
        with pytest.raises(MetadataError):
            parse_node(document(codecs=codecs))

    def test_a_shard_of_more_inner_chunks_than_memory(self, document):
        """A metadata document alone must not take memory by the size it claims."""
        sharding = {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [1, 1], "codecs": ["bytes"], "index_codecs": ["bytes"],
            },
        }  # fmt: skip
        grid = {"name": "regular", "configuration": {"chunk_shape": [2**30, 2**30]}}
        array = parse_node(document(chunk_grid=grid, codecs=[sharding]))
        assert array.layout.levels[0].index_codec((2**30, 2**30)).size == 2**64


class TestGroups:
    def test_plain(self):
        node = parse_node({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}})
        assert isinstance(node, GroupMetadata)
        assert (dict(node.attributes), node.children) == ({"a": 1}, None)

    def test_consolidated(self, document):
        children = {"a": document(), "b": {"zarr_format": 3, "node_type": "group"}}
        node = parse_node({
            "zarr_format": 3,
            "node_type": "group",
            "consolidated_metadata": {
                "kind": "inline", "must_understand": False, "metadata": children,
            },
        })  # fmt: skip
        assert set(node.children) == {"a", "b"}
        assert parse_node(node.children["a"]).shape == (5, 7)

    @pytest.mark.parametrize("zarr_format", [3, 3.0])
    def test_attributes_that_are_no_json(self, zarr_format):
        value = {
            "zarr_format": zarr_format,
            "node_type": "group",
            "attributes": {"a": float("inf")},
        }
        node = parse_node(value)
        assert isinstance(node, GroupMetadata)
        assert dict(node.attributes) == {"a": float("inf")}

    def test_null_consolidated_metadata(self):
        node = parse_node({"zarr_format": 3, "node_type": "group", "consolidated_metadata": None})
        assert node.children is None


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "bytes", "float32", "regular", "NaN", "0x", "\ud800", "a/../b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "configuration", "x", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)

SHARDED = [
    {"name": "transpose", "configuration": {"order": [1, 0]}},
    {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1, 2],
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "blosc", "configuration": {
                    "cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 2,
                    "blocksize": 0}},
            ],
            "index_codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"},
            ],
            "index_location": "end",
        },
    },
    {"name": "gzip", "configuration": {"level": 1}},
    {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
]  # fmt: skip


def paths(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return [at, *(path for key, item in items for path in paths(item, (*at, key)))]


def replaced(value: object, path: tuple[object, ...], new: object) -> object:
    if not path:
        return new
    if isinstance(value, dict):
        return {k: replaced(v, path[1:], new) if k == path[0] else v for k, v in value.items()}
    return [replaced(v, path[1:], new) if i == path[0] else v for i, v in enumerate(value)]


WHOLE = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [5, 7],
    "data_type": "int16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "codecs": SHARDED,
    "dimension_names": ["y", None],
    "attributes": {"a": [1, {"b": None}]},
    "storage_transformers": [],
}


EXTENDED = {
    **WHOLE,
    "data_type": "float32",
    "chunk_grid": {
        "name": "rectilinear",
        "configuration": {"kind": "inline", "chunk_shapes": [[2, [1, 3]], 4]},
    },
    "chunk_key_encoding": {
        "name": "suffix",
        "configuration": {"suffix": ".x", "base-encoding": {"name": "fanout"}},
    },
    "fill_value": "NaN",
    "codecs": [
        {"name": "scale_offset", "configuration": {"offset": -10, "scale": 0.5}},
        {
            "name": "cast_value",
            "configuration": {
                "data_type": "uint8",
                "rounding": "nearest-even",
                "out_of_range": "clamp",
                "scalar_map": {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]},
            },
        },
        {"name": "numcodecs.delta", "configuration": {"dtype": "|u1", "astype": "<u2"}},
        {"name": "reshape", "configuration": {"shape": [[0], -1]}},
        {
            "name": "packbits",
            "configuration": {"padding_encoding": "first_byte", "first_bit": 0, "last_bit": 11},
        },
        {"name": "numcodecs.lzma", "configuration": {"preset": 1, "filters": [{"id": 33}]}},
        {"name": "numcodecs.blosc", "configuration": {"cname": "lz4", "shuffle": 1}},
        {"name": "numcodecs.shuffle", "configuration": {"elementsize": 1}},
        {"name": "numcodecs.crc32", "configuration": {"location": "start"}},
    ],
}
RECORDS = {
    **WHOLE,
    "data_type": {
        "name": "struct",
        "configuration": {
            "fields": [
                {"name": "t", "data_type": {
                    "name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 2}}},
                {"name": "s", "data_type": {
                    "name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}},
                {"name": "z", "data_type": "complex_bfloat16"},
            ]
        },
    },
    "fill_value": {"t": "NaT", "s": "a", "z": [1, "NaN"]},
    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}],
}  # fmt: skip


@pytest.mark.parametrize("document", [WHOLE, EXTENDED, RECORDS])
def test_the_documents_that_are_changed_are_right(document):
    assert parse_node(document).shape == (5, 7)


@examples(300)
@given(data=st.data(), new=JSON)
def test_a_changed_document_is_read_or_refused_and_nothing_else(data, new):
    whole = data.draw(st.sampled_from([WHOLE, EXTENDED, RECORDS]))
    path = data.draw(st.sampled_from(paths(whole)))
    try:
        parse_node(replaced(whole, path, new))
    except MetadataError as error:
        assert "\n" not in str(error)  # noqa: PT017 -- reading it is just as right
