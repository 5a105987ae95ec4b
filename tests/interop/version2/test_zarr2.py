"""Arrays of version 2, written by zarrfs and by the last zarr-python of that version in turn."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

from tests.fs.loop import Loop
from tests.fs.writable import Writable
from tests.interop.peers import READERS
from tests.interop.spec import Array, grid
from zarrfs.store.local.local import LocalStore

from .zarr2 import Zarr2

SHAPE, CHUNKS = (13, 10), (4, 6)


@contextmanager
def writable(loop: Loop, path: Path) -> Iterator[Writable]:
    mount = Writable(loop, LocalStore(path))
    try:
        yield mount
        assert mount.fs.drain() == []
    finally:
        mount.close()


def little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """As elements of the type are in ``array.bin``."""
    return dtype.newbyteorder("<")


def served(values: Array) -> bytes:
    return values.astype(little(values.dtype)).tobytes()


def from_served(content: bytes, like: Array) -> Array:
    return np.frombuffer(content, little(like.dtype)).reshape(like.shape).astype(like.dtype)


def elements(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Array:
    """Any bits that a type has no objection to."""
    random = np.random.default_rng(seed)
    if dtype.names is not None:
        values = np.zeros(shape, dtype)
        for number, name in enumerate(dtype.names):
            field = dtype[name]
            inside = elements(field.base, shape + field.shape, seed + number)
            values[name] = inside
        return values
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "U":
        letters = random.integers(1, 0xD800, (*shape, dtype.itemsize // 4))
        return letters.astype(f"{dtype.byteorder}u4").view(dtype).reshape(shape)
    values = np.frombuffer(random.bytes(dtype.itemsize * math.prod(shape)), dtype)
    return values.reshape(shape).copy()


def in_turn(zarr2: Zarr2, loop: Loop, path: Path, first: Array, second: Array) -> None:
    """Each of the two writes, and both read it, in an array with no chunks yet."""
    with writable(loop, path) as mount:
        file = mount.edit("array.bin")
        content = served(first)
        # Blocks that fit nothing.
        for offset in range(0, len(content), 77):
            file.write(offset, content[offset : offset + 77])
        file.close()
        assert mount.read("array.bin") == content
    check(zarr2, path, first)

    zarr2.write(path, second)
    changed = bytearray(served(second))
    with writable(loop, path) as mount:
        assert mount.read("array.bin") == changed
        file = mount.edit("array.bin")
        for start, stop in ((0, 1), (len(changed) // 5, len(changed) // 2), (-3, None)):
            part = slice(*slice(start, stop).indices(len(changed)))
            changed[part] = content[part]
            file.write(part.start, content[part])
        file.close()
    check(zarr2, path, from_served(bytes(changed), first))


def check(zarr2: Zarr2, path: Path, values: Array) -> None:
    found, _ = zarr2.read(path)
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    assert found.tobytes() == values.tobytes()


DATA_TYPES: dict[str, Any] = {
    **{name: name for name in ("|b1", "|i1", "|u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">u8")},
    **{name: name for name in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", ">c16")},
    **{name: name for name in ("|S1", "|S7", "<U2", ">U2", "|V5")},
    **{name: name for name in ("<M8[ns]", ">M8[D]", "<m8[s]", ">m8[25us]")},
    "struct": [("a", "|u1"), ("b", "<f4"), ("c", "|S3")],
    "struct_big": [("a", ">i2"), ("b", ">f8"), ("c", ">U2"), ("d", "<u4")],
    "struct_subarray": [("a", "<i4"), ("b", ">f4", (2, 3))],
    "struct_in_struct": [("a", "|b1"), ("b", [("x", ">u2"), ("y", [("z", "<c8")], (2,))])],
}


@pytest.mark.parametrize(
    ("name", "order"),
    [(name, "CF"[number % 2]) for number, name in enumerate(DATA_TYPES)]
    + [("struct_in_struct", "C"), ("struct_big", "F")],
)
def test_data_types(zarr2: Zarr2, loop: Loop, tmp_path: Path, name: str, order: str) -> None:
    dtype = np.dtype(DATA_TYPES[name])
    zarr2.create(
        tmp_path,
        shape=SHAPE,
        chunks=CHUNKS,
        fill=elements(dtype, (), 1),
        order=order,
        compressor={"id": "zlib", "level": 1},
    )
    in_turn(zarr2, loop, tmp_path, elements(dtype, SHAPE, 2), elements(dtype, SHAPE, 3))


COMPRESSORS: dict[str, Any] = {
    "none": None,
    "zlib": {"id": "zlib", "level": 9},
    "gzip": {"id": "gzip", "level": 1},
    "bz2": {"id": "bz2", "level": 1},
    "zstd": {"id": "zstd", "level": 1},
    "zstd_checksum": {"id": "zstd", "level": -5, "checksum": True},
    "lz4": {"id": "lz4", "acceleration": 1},
    "lzma": {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
    "lzma_sha256": {"id": "lzma", "format": 1, "check": 10, "preset": 1, "filters": None},
    "lzma_alone": {"id": "lzma", "format": 2, "check": -1, "preset": 0, "filters": None},
    "lzma_raw": {
        "id": "lzma", "format": 3, "check": -1, "preset": None,
        "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}],
    },
    **{
        f"blosc_{cname}_{shuffle}": {
            "id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle, "blocksize": size,
        }
        for cname, shuffle, size in (
            ("blosclz", 0, 0), ("lz4", 1, 0), ("lz4hc", 2, 64), ("zlib", -1, 0), ("zstd", 2, 128),
        )
    },
    **{name: {"id": name} for name in ("crc32", "adler32", "fletcher32")},
    "jenkins_lookup3": {"id": "jenkins_lookup3", "initval": 7, "prefix": None},
    "base64": {"id": "base64"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("compressor", "order"),
    [(name, "CF"[number % 2]) for number, name in enumerate(COMPRESSORS)],
)
def test_compressors(zarr2: Zarr2, loop: Loop, tmp_path: Path, compressor: str, order: str) -> None:
    dtype = np.dtype(">f4" if order == "F" else "<i2")
    zarr2.create(
        tmp_path,
        shape=SHAPE,
        chunks=CHUNKS,
        fill=np.zeros((), dtype),
        order=order,
        compressor=COMPRESSORS[compressor],
    )
    first, second = elements(dtype, SHAPE, 2), elements(dtype, SHAPE, 3)
    # Also something to compress, and in one chunk nothing but the fill value.
    first[:, 5:] = first[0, 0]
    first[4:8, :6] = 0
    in_turn(zarr2, loop, tmp_path, first, second)


FILTERS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "delta": ("<i4", [{"id": "delta", "dtype": "<i4"}]),
    "delta_narrow": (">i4", [{"id": "delta", "dtype": ">i4", "astype": "<i2"}]),
    "delta_twice": ("<u2", [{"id": "delta", "dtype": "<u2"}, {"id": "delta", "dtype": "<u2"}]),
    "shuffle": ("<f8", [{"id": "shuffle", "elementsize": 8}]),
    "delta_shuffle": ("<i4", [
        {"id": "delta", "dtype": "<i4"}, {"id": "shuffle", "elementsize": 4},
    ]),
    "astype": ("<i4", [{"id": "astype", "encode_dtype": ">i2", "decode_dtype": "<i4"}]),
    "fixedscaleoffset": ("<f8", [
        {"id": "fixedscaleoffset", "dtype": "<f8", "astype": "|u1", "offset": -1, "scale": 2},
    ]),
    "quantize": ("<f4", [{"id": "quantize", "digits": 2, "dtype": "<f4"}]),
    # In order F the other one mixes up its own elements.
    "bitround": ("<f4", [{"id": "bitround", "keepbits": 12}]),
    "packbits": ("|b1", [{"id": "packbits"}]),
    "categorize": ("<U1", [
        {"id": "categorize", "labels": list("123456789"), "dtype": "<U1", "astype": "|u1"},
    ]),
    "base64": ("|u1", [{"id": "base64"}]),
    "fletcher32": ("<i4", [{"id": "fletcher32"}]),
    "crc32_adler32": (">u2", [{"id": "crc32"}, {"id": "adler32"}]),
    "compressors": ("<i4", [{"id": "zstd", "level": 1}, {"id": "lz4"}]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "order"),
    [(name, order) for name in FILTERS for order in "CF" if (name, order) != ("bitround", "F")],
)
def test_filters(zarr2: Zarr2, loop: Loop, tmp_path: Path, name: str, order: str) -> None:
    dtype, filters = FILTERS[name]
    # Values that also the lossy ones keep.
    first, second = (
        np.random.default_rng(seed).integers(1, 10, SHAPE).astype(dtype) for seed in (1, 2)
    )
    zarr2.create(
        tmp_path,
        shape=SHAPE,
        chunks=CHUNKS,
        fill=np.zeros((), dtype),
        order=order,
        compressor={"id": "zlib", "level": 1} if order == "F" else None,
        filters=filters,
    )
    in_turn(zarr2, loop, tmp_path, first, second)


GRIDS = {
    "scalar": ((), ()),
    "even": ((24,), (8,)),
    "overhung": ((5,), (16,)),
    "ragged": ((37,), (12,)),
    "one_chunk_3d": ((3, 4, 5), (3, 4, 5)),
    "ragged_3d": ((7, 9, 11), (4, 6, 8)),
    "single_elements": ((3, 4), (1, 1)),
    "ragged_4d": ((3, 5, 4, 6), (2, 4, 4, 4)),
}


@pytest.mark.parametrize(("order", "separator"), ["C.", "F/"])
@pytest.mark.parametrize("name", GRIDS)
def test_grids(
    zarr2: Zarr2, loop: Loop, tmp_path: Path, name: str, order: str, separator: str
) -> None:
    shape, chunks = GRIDS[name]
    dtype = np.dtype("<i4")
    zarr2.create(
        tmp_path,
        shape=shape,
        chunks=chunks,
        fill=np.array(-1, dtype),
        order=order,
        compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        dimension_separator=separator,
    )
    in_turn(zarr2, loop, tmp_path, elements(dtype, shape, 2), elements(dtype, shape, 3))
    keys = {separator.join(map(str, index)) or "0" for index in grid(shape, chunks)}
    stored = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert stored == keys | {".zarray"}


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("<f4", "0000c07f"),
        ("<f8", "010000000000f07f"),
        (">f4", "ff800000"),
        ("<c8", "0000c03f000000c0"),
        ("|b1", "01"),
        ("|S3", "610062"),
        ("<M8[ns]", "0000000000000080"),
        ("|V2", "0102"),
    ],
)
def test_fill_values(zarr2: Zarr2, loop: Loop, tmp_path: Path, dtype: str, bits: str) -> None:
    """What is not stored reads as the fill value; only that very value is not stored."""
    fill = np.frombuffer(bytes.fromhex(bits), dtype).reshape(())
    zarr2.create(tmp_path, shape=SHAPE, chunks=CHUNKS, fill=fill)
    values, stored = zarr2.read(tmp_path)
    assert stored == 0
    with writable(loop, tmp_path) as mount:
        assert mount.read("array.bin") == served(values)
        mount.write("array.bin", 0, served(values))
        assert zarr2.read(tmp_path)[1] == 0
        other = elements(np.dtype(dtype), SHAPE, 4)
        # Of NaN it kept no more than the name.
        other[8:12, :6] = values[0, 0]
        mount.write("array.bin", 0, served(other))
    check(zarr2, tmp_path, other)
    assert zarr2.read(tmp_path)[1] == 7


def test_no_fill_value(zarr2: Zarr2, loop: Loop, tmp_path: Path) -> None:
    """Where it is null, zarr-python 2.18 reads anything where nothing is stored."""
    zarr2.create(tmp_path, shape=SHAPE, chunks=CHUNKS, fill=np.zeros((), "<i4"))
    document = json.loads((tmp_path / ".zarray").read_text())
    (tmp_path / ".zarray").write_text(json.dumps({**document, "fill_value": None}))
    with writable(loop, tmp_path) as mount:
        content = served(np.zeros(SHAPE, "<i4"))
        assert mount.read("array.bin") == content
        mount.write("array.bin", 0, content)
    found, stored = zarr2.read(tmp_path)
    assert stored == 8
    assert not found.any()


def test_others_read_the_same(zarr2: Zarr2, loop: Loop, tmp_path: Path) -> None:
    for number, order in enumerate("CF"):
        path = tmp_path / order
        fill = np.zeros((), ">f4")
        compressor = COMPRESSORS["blosc_zstd_2"]
        zarr2.create(
            path, shape=SHAPE, chunks=CHUNKS, fill=fill, order=order, compressor=compressor
        )
        values = elements(fill.dtype, SHAPE, number)
        with writable(loop, path) as mount:
            mount.write("array.bin", 0, served(values))
        spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{path}/"}}
        assert served(READERS["zarr-python"](path)) == served(values)
        assert served(ts.open(spec, read=True).result().read().result()) == served(values)


@pytest.mark.mount
def test_group_through_a_mount(zarr2: Zarr2, tmp_path: Path, mounted: Callable[..., Path]) -> None:
    """Arrays of a group with consolidated metadata change under `mmap`, `write` and chunk files."""
    source = tmp_path / "group.zarr"
    arrays = {
        "top": ("<f4", "C", COMPRESSORS["blosc_lz4_1"], "."),
        "a/first": (">i2", "F", COMPRESSORS["zlib"], "/"),
        "a/b/deep": (DATA_TYPES["struct_big"], "F", COMPRESSORS["lz4"], "."),
    }
    expected = {}
    for name, (dtype, order, compressor, separator) in arrays.items():
        fill = np.zeros((), dtype)
        zarr2.create(
            source,
            name,
            shape=SHAPE,
            chunks=CHUNKS,
            fill=fill,
            order=order,
            compressor=compressor,
            dimension_separator=separator,
        )
        expected[name] = elements(fill.dtype, SHAPE, len(name))
        zarr2.write(source / name, expected[name])
    zarr2.consolidate(source)
    mount = mounted(source, "rw")
    for name, values in expected.items():
        place = mount / name
        assert (place / "array.bin").read_bytes() == served(values)
        new = elements(values.dtype, SHAPE, 50 + len(name))

        mapped = np.memmap(place / "array.bin", little(values.dtype), "r+", shape=SHAPE)
        mapped[1:6, 3:9] = new[1:6, 3:9]
        mapped.flush()
        del mapped
        values[1:6, 3:9] = new[1:6, 3:9]

        with (place / "array.bin").open("r+b", buffering=0) as file:
            file.seek(11 * SHAPE[1] * values.itemsize)
            assert file.write(served(new[11])) == len(served(new[11]))
        values[11] = new[11]

        with (place / "chunks/1/0").open("r+b") as file:
            file.write(served(new[4:8, :6]))
        values[4:8, :6] = new[4:8, :6]
        assert (place / "array.bin").read_bytes() == served(values)
        # What was closed is stored.
        check(zarr2, source / name, values)
        assert zarr2.read_group(source, name).tobytes() == values.tobytes()
