"""Arrays of versions 2 and 1, written by zarrfs, read by others."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import tensorstore as ts
import zarr

from tests.fs.loop import Loop
from tests.fs.writable import Writable
from zarrfs.store.local.local import LocalStore

SHAPE, CHUNKS = (13, 10), (4, 6)


@pytest.fixture
def write(tmp_path: Path):
    """Writes the whole array in blocks that fit nothing."""
    loop = Loop()

    def write_array(content: bytes) -> None:
        mount = Writable(loop, LocalStore(tmp_path))
        try:
            file = mount.edit("array.bin")
            for offset in range(0, len(content), 77):
                file.write(offset, content[offset : offset + 77])
            file.close()
            assert mount.read("array.bin") == content
        finally:
            mount.close()

    yield write_array
    loop.close()


def elements(dtype: str) -> np.ndarray[Any, Any]:
    """With one chunk of nothing but the fill value."""
    kind = np.dtype(dtype)
    random = np.random.default_rng(1)
    if kind.kind in "bSU":
        values = random.integers(0, 2, SHAPE).astype(kind)
    else:
        values = random.integers(1, 100, SHAPE).astype(kind)
    values[4:8, :6] = np.zeros((), kind)
    return values


COMPRESSORS: dict[str, Any] = {
    "none": None,
    "zlib": {"id": "zlib", "level": 1},
    "bz2": {"id": "bz2", "level": 1},
    "zstd": {"id": "zstd", "level": 1},
    "lz4": {"id": "lz4", "acceleration": 1},
    "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    "lzma": {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
}
FILTERS: dict[str, Any] = {
    "delta": [{"id": "delta", "dtype": "<i4"}],
    "shuffle": [{"id": "shuffle", "elementsize": 4}],
    "fletcher32": [{"id": "fletcher32"}],
}


def make_v2(path: Path, **members: Any) -> None:
    document = {
        "zarr_format": 2, "shape": SHAPE, "chunks": CHUNKS, "dtype": "<i4", "fill_value": 0,
        "order": "C", "compressor": None, "filters": None, **members,
    }  # fmt: skip
    (path / ".zarray").write_text(json.dumps(document))


def check_v2(path: Path, values: np.ndarray[Any, Any]) -> None:
    found = np.asarray(zarr.open_array(path, mode="r", zarr_format=2)[...])
    assert found.tobytes() == values.astype(found.dtype).tobytes()
    assert not (path / "1.0").exists()
    assert (path / "3.1").exists()


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    ("compressor", "filters"),
    [(name, "no filters") for name in COMPRESSORS] + [("zlib", name) for name in FILTERS],
)
def test_version_2(tmp_path: Path, write, order: str, compressor: str, filters: str) -> None:
    make_v2(tmp_path, order=order, compressor=COMPRESSORS[compressor], filters=FILTERS.get(filters))
    values = elements("<i4")
    write(values.tobytes())
    check_v2(tmp_path, values)
    if filters == "no filters" and compressor not in ("lz4", "lzma"):
        spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        found = ts.open(spec, read=True).result().read().result()
        assert np.asarray(found).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "dtype", ["|b1", "|i1", ">i2", "<u8", "<f2", ">f4", "<f8", ">c16", "|S3", "<U2", ">U2"]
)
@pytest.mark.parametrize("order", "CF")
def test_data_types_of_version_2(tmp_path: Path, write, dtype: str, order: str) -> None:
    fill: Any = 0
    if "b1" in dtype:
        fill = False
    elif "c" in dtype:
        fill = [0.0, 0.0]
    elif "S" in dtype or "U" in dtype:
        fill = ""
    make_v2(tmp_path, dtype=dtype, order=order, fill_value=fill, compressor=COMPRESSORS["zlib"])
    values = elements(dtype)
    little = values.astype(values.dtype.newbyteorder("<"))
    write(little.tobytes())
    array = zarr.open_array(tmp_path, mode="r", zarr_format=2)
    found = np.asarray(array[...])
    assert found.astype(little.dtype).tobytes() == little.tobytes()
    assert not (tmp_path / "1.0").exists()


@pytest.mark.parametrize("separator", "./")
def test_keys_of_version_2(tmp_path: Path, write, separator: str) -> None:
    make_v2(tmp_path, dimension_separator=separator)
    values = elements("<i4")
    write(values.tobytes())
    found = np.asarray(zarr.open_array(tmp_path, mode="r", zarr_format=2)[...])
    assert found.tobytes() == values.tobytes()
    assert (tmp_path / f"3{separator}1").exists()


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["|u1", "<i4", ">f8"])
@pytest.mark.parametrize(
    ("compression", "options", "codec"),
    [
        ("none", None, None),
        ("zlib", 1, {"id": "zlib"}),
        ("gzip", 1, {"id": "zlib"}),
        ("bz2", 9, {"id": "bz2"}),
        ("lzma", {"preset": 1}, {"id": "lzma"}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1}, {"id": "blosc"}),
    ],
)
def test_version_1(
    tmp_path: Path, write, compression: str, options: Any, codec: Any, dtype: str, order: str
) -> None:
    meta = {
        "zarr_format": 1, "shape": SHAPE, "chunks": CHUNKS, "dtype": dtype, "fill_value": 0,
        "order": order, "compression": compression, "compression_opts": options,
    }  # fmt: skip
    (tmp_path / "meta").write_text(json.dumps(meta))
    (tmp_path / "attrs").write_text("{}")
    values = elements(dtype)
    write(values.astype(values.dtype.newbyteorder("<")).tobytes())
    found = np.zeros(SHAPE, dtype)
    for index in product(range(4), range(2)):
        file = tmp_path / ".".join(map(str, index))
        if not file.exists():
            assert index == (1, 0)
            continue
        data = file.read_bytes()
        if codec is not None:
            data = bytes(numcodecs.get_codec(codec).decode(data))
        assert len(data) == math.prod(CHUNKS) * np.dtype(dtype).itemsize
        # What is not compressed by blosc was always written in C order.
        stored_order = order if compression == "blosc" else "C"
        chunk = np.frombuffer(data, dtype).reshape(CHUNKS, order=stored_order)
        where = tuple(slice(i * n, i * n + n) for i, n in zip(index, CHUNKS, strict=True))
        inside = found[where].shape
        found[where] = chunk[: inside[0], : inside[1]]
    assert (found == values).all()
