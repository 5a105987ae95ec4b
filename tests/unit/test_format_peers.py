"""Arrays that zarr-python and TensorStore write in memory, decoded with the format layer.

What their readers and ours make of the same bytes must be the same, bit for bit; and what
we encode must decode to the same again.
"""

from __future__ import annotations

import json
import warnings
from itertools import product

import numpy as np
import pytest
import tensorstore as ts
import zarr
from zarr.codecs import numcodecs as zarr_numcodecs
from zarr.storage import MemoryStore

from zarrfs.format.metadata.older.v2 import parse_array_v2
from zarrfs.format.metadata.v3 import load_json, parse_node
from zarrfs.format.registry import NUMCODECS

RANDOM = np.random.default_rng(7)


def decode(objects, prefix=""):
    """The whole array from stored objects by key, with every chunk also encoded and back."""
    if f"{prefix}zarr.json" in objects:
        array = parse_node(load_json(objects[f"{prefix}zarr.json"], "zarr.json"))
    else:
        array = parse_array_v2(objects[f"{prefix}.zarray"], objects.get(f"{prefix}.zattrs"))
    layout = array.layout
    whole = np.empty(array.shape, layout.data_type.dtype)
    for index in product(*map(range, layout.read.counts)):
        shape = layout.read.chunk_shape(index)
        data = encoded_chunk(objects, prefix, array, index)
        codec = layout.chunk_codec(shape)
        chunk = codec.spec.filled() if data is None else codec.decode(data)
        again = codec.decode(bytes(codec.encode(chunk)))
        assert same(again, chunk)
        valid = layout.read.valid_shape(index)
        origin = layout.read.origin(index)
        at = tuple(slice(o, o + n) for o, n in zip(origin, valid, strict=True))
        whole[at] = chunk[tuple(map(slice, valid))]
    return whole


def encoded_chunk(objects, prefix, array, index):
    """The bytes of a read chunk, through the shards that it is in."""
    layout = array.layout
    stored = layout.stored_index(index)
    data = objects.get(prefix + array.chunk_keys.key(stored))
    shape, around = layout.stored.chunk_shape(stored), None
    origin = layout.stored.origin(stored)
    for depth, level in enumerate(layout.levels):
        if data is None:
            return None
        around = layout.around_codecs(layout.stored.chunk_shape(stored))
        for codec in reversed(around[depth]):
            data = codec.decode(data, None)
        codec = level.index_codec(shape)
        view = memoryview(data)
        start = 0 if codec.location == "start" else len(view) - codec.size
        entries = codec.decode(view[start : start + codec.size], len(view))
        element = layout.read.origin(index)
        local = tuple(
            (e - o) // n for e, o, n in zip(element, origin, level.inner_shape, strict=True)
        )
        where = entries.locate(level.entry(local), len(view))
        data = None if where is None else view[where[0] : sum(where)]
        origin = tuple(o + i * n for o, i, n in zip(origin, local, level.inner_shape, strict=True))
        shape = level.inner_shape
    return data


def same(a, b):
    if a.dtype == object:
        return a.tolist() == b.tolist()
    return a.tobytes() == b.tobytes()


def written_by_zarr(values, **arguments):
    """The stored objects of an array that zarr-python wrote, and what it reads from them."""
    store = MemoryStore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.create_array(store, shape=values.shape, dtype=values.dtype, **arguments)
        array[...] = values
        read = zarr.open_array(store, mode="r")[...]
    return {key: value.to_bytes() for key, value in store._store_dict.items()}, read


NUMBERS = RANDOM.integers(-100, 100, (9, 7))
CODECS = {
    "astype": ("float64", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
    "bitround": ("float32", {"keepbits": 5}),
    "delta": ("int32", {"dtype": "<i4"}),
    "fixedscaleoffset": ("float64", {"offset": 5, "scale": 10, "dtype": "<f8", "astype": "<i2"}),
    "packbits": ("bool", {}),
    "quantize": ("float32", {"digits": 2, "dtype": "<f4"}),
    "pcodec": ("int64", {"level": 4}),
    "zfpy": ("float32", {"mode": 3, "precision": 20}),
    "adler32": ("int32", {}),
    "blosc": ("int32", {"cname": "zstd", "clevel": 3, "shuffle": 2}),
    "bz2": ("int32", {"level": 3}),
    "crc32": ("int32", {}),
    "crc32c": ("int32", {}),
    "fletcher32": ("int32", {}),
    "gzip": ("int32", {"level": 2}),
    "jenkins_lookup3": ("int32", {}),
    "lz4": ("int32", {"acceleration": 2}),
    "lzma": ("int32", {"preset": 2}),
    "shuffle": ("int32", {"elementsize": 4}),
    "zlib": ("int32", {"level": 3}),
    "zstd": ("int32", {"level": 3}),
}
CLASSES = {
    "astype": "AsType", "bitround": "BitRound", "delta": "Delta", "quantize": "Quantize",
    "fixedscaleoffset": "FixedScaleOffset", "packbits": "PackBits", "pcodec": "PCodec",
    "zfpy": "ZFPY", "adler32": "Adler32", "blosc": "Blosc", "bz2": "BZ2", "crc32": "CRC32",
    "crc32c": "CRC32C", "fletcher32": "Fletcher32", "gzip": "GZip", "lz4": "LZ4", "lzma": "LZMA",
    "jenkins_lookup3": "JenkinsLookup3", "shuffle": "Shuffle", "zlib": "Zlib", "zstd": "Zstd",
}  # fmt: skip


def test_every_codec_of_numcodecs_is_tried():
    assert CODECS.keys() == CLASSES.keys() == NUMCODECS.keys()


@pytest.mark.parametrize("name", CODECS)
def test_numcodecs_in_v3(name):
    dtype, configuration = CODECS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codec = getattr(zarr_numcodecs, CLASSES[name])(**configuration)
    where = {"array -> array": "filters", "array -> bytes": "serializer",
             "bytes -> bytes": "compressors"}[NUMCODECS[name][0]]  # fmt: skip
    arguments = {"filters": None, "compressors": None}
    arguments[where] = codec if where == "serializer" else [codec]
    values = NUMBERS.astype(dtype)
    objects, read = written_by_zarr(values, chunks=(4, 3), zarr_format=3, **arguments)
    assert same(decode(objects), read)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", [n for n in CODECS if n not in ("zfpy", "jenkins_lookup3")])
def test_numcodecs_in_v2(name, order):
    import numcodecs

    dtype, configuration = CODECS[name]
    if name == "blosc":
        configuration = {**configuration, "typesize": None}
    codec = numcodecs.get_codec({"id": name, **configuration})
    last = name in ("pcodec", "blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "crc32")
    arguments = {"filters": None, "compressors": codec} if last else {
        "filters": [codec], "compressors": numcodecs.Zlib(1)}  # fmt: skip
    objects, read = written_by_zarr(
        NUMBERS.astype(dtype), chunks=(4, 3), zarr_format=2, order=order, **arguments
    )
    assert same(decode(objects), read)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [
    ">i2", ">f8", ">c16", "<u4", "|b1", "|S3", ">U2", "<M8[10ms]", ">m8[s]", "<f2",
    [("a", ">i2"), ("b", "<f4"), ("c", "S3")],
])  # fmt: skip
def test_dtypes_and_orders_in_v2(dtype, order):
    dtype = np.dtype(dtype)
    raw = RANDOM.integers(0, 256, 5 * 6 * dtype.itemsize, np.uint8)
    if dtype.kind in "bU":
        raw &= 1
    values = np.frombuffer(raw.tobytes(), dtype).reshape(5, 6)
    objects, read = written_by_zarr(
        values, chunks=(2, 4), zarr_format=2, order=order, filters=None, compressors=None
    )
    assert same(decode(objects), np.asarray(read).astype(dtype.newbyteorder("<")))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_strings(zarr_format):
    values = np.array([["a", "", "äöü"], ["x" * 300, "😀", "b"]], object).astype("T")
    objects, read = written_by_zarr(values, chunks=(2, 2), zarr_format=zarr_format)
    assert decode(objects).tolist() == read.tolist() == values.tolist()


@pytest.mark.parametrize("dtype", ["<M8[ns]", "<m8[15us]", "<U3", "S4", "V6", "complex64", "bool"])
def test_extension_types_in_v3(dtype):
    dtype = np.dtype(dtype)
    raw = RANDOM.integers(0, 256, 35 * dtype.itemsize, np.uint8)
    if dtype.kind in "bU":
        raw &= 1
    values = np.frombuffer(raw.tobytes(), dtype).reshape(5, 7)
    objects, read = written_by_zarr(values, chunks=(2, 3), zarr_format=3)
    assert same(decode(objects), np.asarray(read))


def written_by_tensorstore(values, metadata):
    """As `written_by_zarr`. ``metadata`` is that of the zarr3 driver."""
    context = ts.Context()
    spec = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": "a/"}, "metadata": metadata}
    array = ts.open(spec, create=True, context=context).result()
    array.write(values).result()
    store = ts.KvStore.open({"driver": "memory", "path": "a/"}, context=context).result()
    objects = {key.decode(): store.read(key).result().value for key in store.list().result()}
    return objects, array.read().result()


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
INDEX = [LITTLE, {"name": "crc32c"}]


def sharding(chunk_shape, codecs=(LITTLE,), location="end", index=INDEX):
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": chunk_shape, "codecs": list(codecs), "index_codecs": list(index),
            "index_location": location,
        },
    }  # fmt: skip


def transpose(*order):
    return {"name": "transpose", "configuration": {"order": list(order)}}


GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1}}


@pytest.mark.parametrize("codecs", [
    [sharding([2, 3, 1])],
    [sharding([2, 3, 1], [LITTLE, GZIP], "start")],
    [sharding([2, 3, 1], [transpose(2, 0, 1), LITTLE, ZSTD])],
    [transpose(2, 0, 1), sharding([2, 2, 3])],
    [transpose(2, 0, 1), sharding([1, 4, 6], [transpose(1, 2, 0), LITTLE])],
    [transpose(1, 2, 0), sharding([6, 2, 2], [transpose(2, 1, 0), LITTLE, GZIP], "start")],
    [sharding([4, 6, 2], [sharding([2, 3, 1], [LITTLE, ZSTD], "start")])],
    [transpose(2, 1, 0), sharding([2, 3, 4], [transpose(0, 2, 1), sharding([1, 2, 3])])],
    [sharding([2, 2, 2], index=[transpose(3, 0, 2, 1), LITTLE])],
    [sharding([2, 2, 2], index=[{"name": "bytes", "configuration": {"endian": "big"}}])],
])  # fmt: skip
@pytest.mark.parametrize("sparse", [False, True])
def test_shards_of_tensorstore(codecs, sparse):
    values = RANDOM.integers(1, 1000, (9, 13, 5)).astype("int16")
    if sparse:
        values[:3] = values[:, 4:10] = 0
    metadata = {
        "shape": [9, 13, 5],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 6, 2 * 2]}},
        "data_type": "int16",
        "fill_value": 0,
        "codecs": codecs,
    }
    objects, read = written_by_tensorstore(values, metadata)
    assert json.loads(objects["zarr.json"])["codecs"][0]["name"] == codecs[0]["name"]
    assert same(decode(objects), read)
    assert same(read, values)


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("name", [
    "int2", "int4", "bfloat16", "float4_e2m1fn", "float8_e3m4", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
])  # fmt: skip
def test_small_numbers_of_tensorstore(name, endian):
    dtype = ts.dtype(name).numpy_dtype
    values = np.arange(-2, 2).repeat(5).astype(np.float32).astype(dtype).reshape(4, 5)
    if name == "float8_e8m0fnu":
        values = np.abs(np.arange(1, 21)).astype(np.float32).astype(dtype).reshape(4, 5)
    metadata = {
        "shape": [4, 5],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 2]}},
        "data_type": name,
        "fill_value": 1,
        "codecs": [{"name": "bytes", "configuration": {"endian": endian}}],
    }
    objects, read = written_by_tensorstore(values, metadata)
    decoded = decode(objects)
    if decoded.dtype.kind == "i":
        assert decoded.tolist() == read.astype(np.int8).tolist()
    else:
        assert same(decoded, read)
