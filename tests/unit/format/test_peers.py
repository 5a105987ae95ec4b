"""Arrays that zarr-python and TensorStore write in memory, decoded with the format layer.

What their readers and ours make of the same bytes must be the same, bit for bit; and what
we encode must decode to the same again.
"""

import warnings
from itertools import product

import numpy as np
import pytest
import tensorstore as ts
import zarr
from zarr.codecs import numcodecs as zarr_numcodecs
from zarr.storage import MemoryStore

from zarrfs.format.metadata.documents import load_json
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.format.registry import NUMCODECS

RANDOM = np.random.default_rng(7)


def decode(objects):
    """The whole array from stored objects by key, with every chunk also encoded and back."""
    array = parse_node(load_json(objects["zarr.json"], "zarr.json"))
    layout = array.layout
    whole = np.empty(array.shape, layout.data_type.dtype)
    for index in product(*map(range, layout.read.counts)):
        data = objects.get(array.chunk_keys.key(index))
        codec = layout.chunk_codec(layout.read.chunk_shape(index))
        chunk = codec.spec.filled() if data is None else codec.decode(data)
        again = codec.decode(bytes(codec.encode(chunk)))
        assert same(again, chunk)
        valid = layout.read.valid_shape(index)
        origin = layout.read.origin(index)
        at = tuple(slice(o, o + n) for o, n in zip(origin, valid, strict=True))
        whole[at] = chunk[tuple(map(slice, valid))]
    return whole


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
# As "lz4" is LZ4 there, and "fixedscaleoffset" FixedScaleOffset.
CLASSES = {name.lower(): name for name in dir(zarr_numcodecs)}


def test_every_codec_of_numcodecs_is_tried():
    assert CODECS.keys() == NUMCODECS.keys()


@pytest.mark.parametrize("name", CODECS)
def test_numcodecs_in_v3(name):
    dtype, configuration = CODECS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codec = getattr(zarr_numcodecs, CLASSES[name.replace("_", "")])(**configuration)
    where = {"array -> array": "filters", "array -> bytes": "serializer",
             "bytes -> bytes": "compressors"}[NUMCODECS[name][0]]  # fmt: skip
    arguments = {"filters": None, "compressors": None}
    arguments[where] = codec if where == "serializer" else [codec]
    values = NUMBERS.astype(dtype)
    objects, read = written_by_zarr(values, chunks=(4, 3), zarr_format=3, **arguments)
    assert same(decode(objects), read)


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
