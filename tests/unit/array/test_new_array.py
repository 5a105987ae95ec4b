"""Documents of new arrays, member by member against those that TensorStore writes."""

import json
from itertools import product

import pytest
import tensorstore as ts

from zarrfs.array.making.create import new_documents
from zarrfs.errors import UsageError, ZarrfsError
from zarrfs.format.making.array_template import template, with_defaults
from zarrfs.format.making.chunk_choice import ChunkConstraints
from zarrfs.format.making.new_array import NewArray
from zarrfs.format.text_forms import parse_codecs, read_unit

CHUNKS, SHARDS = ChunkConstraints((10, 20, 30)), ChunkConstraints((100, 200, 300))

TRANSPOSE = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}
INNER = {"codecs": [TRANSPOSE, "crc32c"], "index_codecs": ["crc32c"], "index_location": "start"}
CHAINS = (
    [],
    ["bytes"],
    ["gzip"],
    ["zstd", "crc32c"],
    ["blosc"],
    ["crc32c", "blosc"],
    [{"name": "bytes", "configuration": {"endian": "big"}}, "blosc"],
    [{"name": "blosc", "configuration": {"cname": "zstd", "typesize": 4}}],
    [{"name": "blosc", "configuration": {"shuffle": "noshuffle"}}],
    [{"name": "zstd", "configuration": {"level": 7}}],
    [TRANSPOSE],
    [{"name": "transpose", "configuration": {"order": "F"}}, "gzip"],
    ["sharding_indexed"],
    [TRANSPOSE, "sharding_indexed"],
    [{"name": "sharding_indexed", "configuration": INNER}],
    [TRANSPOSE, {"name": "sharding_indexed", "configuration": INNER}],
)


def documents_of_tensorstore(driver, **schema):
    spec = {"driver": driver, "kvstore": {"driver": "memory"}, "schema": schema}
    array = ts.open(spec, create=True, context=ts.Context()).result()
    store = array.kvstore
    return {
        key.decode(): json.loads(store.read(key).result().value) for key in store.list().result()
    }


def document(array: NewArray, name: str = "zarr.json"):
    return json.loads(new_documents(array)[name])


@pytest.mark.parametrize("chain", CHAINS, ids=json.dumps)
def test_codecs_are_completed_as_tensorstore_completes_them(chain):
    for sharded, order in product([False, True], [None, (2, 1, 0), (1, 0, 2)]):
        check_completed(chain, sharded, order)


def check_completed(chain, sharded, order):
    layout = {"read_chunk": {"shape": [10, 20, 30]}}
    layout["write_chunk"] = {"shape": [100, 200, 300] if sharded else [10, 20, 30]}
    if order is not None:
        layout["inner_order"] = list(order)
    theirs = documents_of_tensorstore(
        "zarr3",
        dtype="uint16",
        domain={"shape": [1000, 2000, 3000]},
        chunk_layout=layout,
        codec={"driver": "zarr3", "codecs": chain},
    )["zarr.json"]
    ours = document(
        NewArray(
            shape=(1000, 2000, 3000),
            data_type="uint16",
            chunks=CHUNKS,
            shards=SHARDS if sharded else None,
            codecs=chain,
            order=order,
        )
    )
    assert ours.pop("chunk_key_encoding") == {
        "name": "default",
        "configuration": {"separator": "/"},
    }
    theirs.pop("chunk_key_encoding")
    assert ours == theirs


TYPES = (
    "bool", "int4", "int8", "uint8", "int16", "uint32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128", "float8_e5m2",
)  # fmt: skip


@pytest.mark.parametrize("data_type", TYPES)
def test_defaults_of_every_type_are_those_of_tensorstore(data_type):
    for codecs in (["blosc"], []):
        theirs = documents_of_tensorstore(
            "zarr3",
            dtype=data_type,
            domain={"shape": [100]},
            codec={"driver": "zarr3", "codecs": codecs},
        )["zarr.json"]
        ours = document(NewArray(shape=(100,), data_type=data_type, codecs=codecs))
        for member in ("codecs", "fill_value", "chunk_grid", "data_type"):
            # As text, because 0 is not 0.0 and not false.
            assert json.dumps(ours[member], sort_keys=True) == json.dumps(
                theirs[member], sort_keys=True
            )


@pytest.mark.parametrize("codec", [None, "blosc", "zstd", "gzip", "zlib", "bz2"])
def test_version_2_is_as_tensorstore_writes_it(codec):
    types = ("bool", "int8", "uint16", "float32", "complex64")
    for data_type, order in product(types, [None, (1, 0)]):
        check_version_2(data_type, codec, order)


def check_version_2(data_type, codec, order):
    chosen = {} if codec is None else {"codec": {"driver": "zarr", "compressor": {"id": codec}}}
    layout = {} if order is None else {"chunk_layout": {"inner_order": list(order)}}
    theirs = documents_of_tensorstore(
        "zarr", dtype=data_type, domain={"shape": [5000, 3000]}, **chosen, **layout
    )[".zarray"]
    ours = document(
        NewArray(
            shape=(5000, 3000),
            data_type=data_type,
            zarr_format=2,
            codecs=None if codec is None else [codec],
            order=order,
        ),
        ".zarray",
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "unit", ["4nm", "4 nm", "0.5um", "1e3", "1e20m", "nm", "4e-9m", " 3  m s ", "100000000m", ".5m"]
)
def test_units_are_as_tensorstore_writes_them(unit):
    assert read_unit(unit) == str(ts.Unit(unit))


@pytest.mark.parametrize("unit", ["0m", "-1m", "1e400m"])
def test_units_have_a_factor_above_zero(unit):
    with pytest.raises(ValueError, match="factor must be above 0"):
        read_unit(unit)


def test_names_units_and_attributes():
    asked = {
        "shape": (10, 20, 30),
        "data_type": "uint8",
        "dimension_names": ["x", None, "z"],
        "dimension_units": ["4 nm", None, "8 nm"],
    }
    ours = document(NewArray(**asked, attributes={"a": [1]}))
    assert ours["attributes"] == {"a": [1], "dimension_units": ["4 nm", None, "8 nm"]}
    assert ours["dimension_names"] == ["x", None, "z"]
    theirs = documents_of_tensorstore(
        "zarr3",
        dtype="uint8",
        domain={"shape": [10, 20, 30], "labels": ["x", "", "z"]},
        dimension_units=["4nm", None, "8nm"],
    )["zarr.json"]
    assert theirs["dimension_names"] == ours["dimension_names"]
    assert theirs["attributes"]["dimension_units"] == ours["attributes"]["dimension_units"]


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("none", []),
        ("gzip", [{"name": "gzip"}]),
        ("zstd:3", [{"name": "zstd", "configuration": {"level": 3}}]),
        ("zstd:-5,true", [{"name": "zstd", "configuration": {"level": -5, "checksum": True}}]),
        (
            "blosc:lz4,5,shuffle,crc32c",
            [
                {
                    "name": "blosc",
                    "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"},
                },
                {"name": "crc32c"},
            ],
        ),
        (
            "blosc:zstd,zstd:1",
            [
                {"name": "blosc", "configuration": {"cname": "zstd"}},
                {"name": "zstd", "configuration": {"level": 1}},
            ],
        ),
        (
            "transpose:2,0,1,bytes:big,zstd",
            [
                TRANSPOSE,
                {"name": "bytes", "configuration": {"endian": "big"}},
                {"name": "zstd"},
            ],
        ),
        (
            "transpose:F,gzip:1",
            [
                {"name": "transpose", "configuration": {"order": "F"}},
                {"name": "gzip", "configuration": {"level": 1}},
            ],
        ),
        (
            "zfp:mode=fixed_rate,rate=10.5",
            [{"name": "zfp", "configuration": {"mode": "fixed_rate", "rate": 10.5}}],
        ),
        ('["gzip", {"name": "crc32c"}]', ["gzip", {"name": "crc32c"}]),
        ('{"name": "gzip"}', [{"name": "gzip"}]),
    ],
)
def test_short_forms_of_codecs(text, chain):
    assert parse_codecs(text) == chain


@pytest.mark.parametrize("text", [",gzip", "zstd:high", "gzip:1,,crc32c", "[1", "blosc:foo"])
def test_what_is_no_chain_of_codecs(text):
    with pytest.raises(ValueError, match="codec"):
        parse_codecs(text)


ROUND_TRIPS = (
    NewArray(shape=(10, 20, 30), data_type="uint16", zarr_format=3, codecs=["zstd"]),
    NewArray(
        shape=(1000, 2000, 3000), data_type="float32", fill_value="NaN", chunks=CHUNKS,
        shards=SHARDS, codecs=[TRANSPOSE, {"name": "sharding_indexed", "configuration": INNER}],
        dimension_names=["a", None, "c"], attributes={"k": 1},
    ),
    NewArray(shape=(3,), data_type="complex64", zarr_format=2, fill_value=["NaN", 1.5]),
    NewArray(
        shape=(3, 4), data_type="r24", zarr_format=2, endian="big", fill_value=[1, 2, 3],
        order=(1, 0), dimension_names=["y", "x"], codecs=[],
        key_encoding={"name": "v2", "configuration": {"separator": "/"}},
    ),
    NewArray(shape=(3,), data_type="string", zarr_format=2, fill_value="x"),
    NewArray(shape=(3,), data_type="string", fill_value="x"),
    NewArray(shape=(), data_type="bool", fill_value=True),
)  # fmt: skip


@pytest.mark.parametrize("array", ROUND_TRIPS, ids=lambda a: f"{a.data_type}-{a.zarr_format}")
def test_a_document_as_template_gives_the_same_document(array):
    documents = new_documents(array)
    name = next(name for name in documents if name != ".zattrs")
    attributes = json.loads(documents.get(".zattrs", b"{}"))
    again = template(json.loads(documents[name]), name, attributes)
    assert new_documents(again) == documents
    assert new_documents(with_defaults(NewArray(), again)) == documents


def test_what_is_given_replaces_what_a_template_says():
    base = template(document(ROUND_TRIPS[1]), "zarr.json")
    other = document(with_defaults(NewArray(chunks=ChunkConstraints((0, 10, 0))), base))
    sharding = other["codecs"][1]["configuration"]
    assert sharding["chunk_shape"] == [30, 10, 10]
    assert sharding["index_location"] == "start"
    assert other["chunk_grid"]["configuration"]["chunk_shape"] == [100, 200, 300]
    other = document(with_defaults(NewArray(shape=(5, 5, 5), attributes={"j": 2}), base))
    assert other["shape"] == [5, 5, 5]
    assert other["attributes"] == {"k": 1, "j": 2}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"shape": None}, "the shape of the array must be given"),
        ({"data_type": None}, "the data type of the array must be given"),
        ({"shape": (-1, 2, 3)}, "-1 is not a valid axis length"),
        ({"data_type": "uint17"}, "unknown data type 'uint17'"),
        ({"fill_value": -1}, "fill value -1"),
        ({"codecs": ["pickle"]}, "would run code"),
        ({"codecs": ["qqq"]}, "unknown codec 'qqq'$"),
        ({"codecs": ["zst"]}, "unknown codec 'zst'; did you mean zstd"),
        ({"codecs": [17]}, "17 is not a codec"),
        ({"codecs": ["gzip", TRANSPOSE]}, "codecs must go"),
        ({"codecs": [{"name": "gzip", "configuration": {"level": 17}}]}, "level"),
        ({"order": (0, 0, 1)}, "not a permutation"),
        ({"dimension_names": ["x"]}, "1 dimension names for 3 axes"),
        ({"attributes": {"a": float("nan")}}, "JSON"),
        ({"zarr_format": 2, "shards": SHARDS}, "no shards"),
        ({"zarr_format": 2, "data_type": "bfloat16"}, "Zarr 2 has no data type bfloat16"),
        ({"zarr_format": 2, "data_type": "int4"}, "Zarr 2 has no data type int4"),
        ({"zarr_format": 2, "order": (1, 0, 2)}, "only the orders C and F"),
        ({"zarr_format": 2, "codecs": [TRANSPOSE]}, "no codec transpose"),
        ({"zarr_format": 2, "codecs": ["zip"]}, "zip"),
        ({"zarr_format": 2, "key_encoding": {"name": "default"}}, "key encoding"),
        ({"zarr_format": 2, "dimension_names": ["x", None, "z"]}, "every axis has a name"),
        (
            {
                "chunks": CHUNKS,
                "codecs": [
                    {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2, 3]}}
                ],
            },
            "the codecs have",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_created(asked, reason):
    array = NewArray(**{"shape": (100, 200, 300), "data_type": "uint16", **asked})
    with pytest.raises(ZarrfsError, match=reason):
        new_documents(array)


def test_usage_errors_are_told_from_bad_metadata():
    with pytest.raises(UsageError):
        new_documents(NewArray())
