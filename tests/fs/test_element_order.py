"""Byte order, axis order and the header of ``array.npy``, for every core data type."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document
from tests.fs.memory_store import MemoryStore

pytestmark = pytest.mark.timeout(60)

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SHAPE = (3, 4, 5)


def numbers(dtype):
    """Any bits, the NaNs that arithmetic would quiet among them."""
    dtype = np.dtype(dtype).newbyteorder("<")
    rng = np.random.default_rng(3)
    if dtype.kind == "b":
        return rng.integers(0, 2, SHAPE).astype(bool)
    array = rng.integers(0, 256, (*SHAPE, dtype.itemsize), "u1").view(dtype)[..., 0]
    if dtype == "<f4":
        array.reshape(-1).view("<u4")[:2] = 0x7F800001, 0xFFC12345
    return array


def swapped(array):
    """The same elements, their bytes turned round bit for bit."""
    parts = array.dtype.itemsize // (2 if array.dtype.kind == "c" else 1)
    turned = array.reshape(-1).view(f"V{parts}").view("u1").reshape(-1, parts)[:, ::-1]
    return np.ascontiguousarray(turned).tobytes()


@pytest.fixture(params=DTYPES)
def source(request):
    array = numbers(request.param)
    document = array_document(SHAPE, SHAPE, data_type=request.param,
                              fill_value=False if request.param == "bool" else
                              [0, 0] if "complex" in request.param else 0)  # fmt: skip
    return array, MemoryStore({"zarr.json": document, "c/0/0/0": array.tobytes()})


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_every_core_type(mount, source, order, byteorder, tmp_path):
    array, store = source
    m = mount(store, byteorder=byteorder, order=order)
    file_order = np.ascontiguousarray(array.T) if order == "F" else array
    expected = swapped(file_order) if byteorder == "big" else file_order.tobytes()
    assert m.read("array.bin") == expected
    assert m.read("chunks/0/0/0") == (swapped(array) if byteorder == "big" else array.tobytes())

    npy = m.read("array.npy")
    assert npy.endswith(expected)
    (tmp_path / "a.npy").write_bytes(npy)
    loaded = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert loaded.shape == SHAPE
    assert loaded.dtype.newbyteorder("<") == array.dtype
    assert loaded.flags.f_contiguous == (order == "F")
    little = loaded.astype(array.dtype) if byteorder == "little" else loaded.byteswap()
    assert np.ascontiguousarray(little).tobytes() == array.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_fill_values_keep_their_bits(mount, dtype, order):
    pattern = "0x7f800001"
    fill = [pattern, pattern] if dtype == "complex64" else pattern
    store = MemoryStore({"zarr.json": array_document((5,), (3,), data_type=dtype, fill_value=fill)})
    element = bytes.fromhex("7f800001") * (2 if dtype == "complex64" else 1)
    m = mount(store, byteorder="big", order=order)
    assert m.read("array.bin") == 5 * element
    # The overhang is another way for a fill value to come in.
    assert m.read("chunks/1") == 3 * element


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_raw_bytes_have_no_byte_order(mount, byteorder, tmp_path):
    elements = np.random.default_rng(1).integers(0, 256, 5 * 3, "u1").tobytes()
    document = array_document((5,), (5,), data_type="r24", fill_value=[1, 2, 3])
    m = mount(MemoryStore({"zarr.json": document, "c/0": elements}), byteorder=byteorder)
    assert m.read("array.bin") == elements
    (tmp_path / "a.npy").write_bytes(m.read("array.npy"))
    assert np.load(tmp_path / "a.npy").tobytes() == elements


def test_big_endian_chunks_are_little_endian_files(mount, tmp_path):
    array = zarr.create_array(
        tmp_path / "a", shape=(10,), chunks=(4,), dtype="i4",
        serializer=zarr.codecs.BytesCodec(endian="big"),
    )  # fmt: skip
    array[...] = np.arange(10)
    m = mount(tmp_path / "a")
    assert m.read("array.bin") == np.arange(10, dtype="<i4").tobytes()


def test_column_major_with_shards_and_overhang(mount, tmp_path):
    expected = np.arange(7 * 11 * 5, dtype="<u2").reshape(7, 11, 5)
    array = zarr.create_array(
        tmp_path / "a", shape=expected.shape, chunks=(2, 3, 2), shards=(4, 6, 4), dtype="<u2"
    )
    array[...] = expected
    m = mount(tmp_path / "a", order="F")
    assert m.read("array.bin", 37) == expected.tobytes(order="F")
    (tmp_path / "a.npy").write_bytes(m.read("array.npy", 41))
    loaded = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert np.array_equal(loaded, expected)
    assert loaded.flags.f_contiguous
