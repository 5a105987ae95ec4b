"""Arrays of versions 2 and 1, written by zarrfs, read by others."""

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


@pytest.mark.parametrize(
    ("dtype", "order", "compressor", "separator", "filters"),
    [
        ("|b1", "C", "none", "/", None),
        ("|i1", "F", "none", ".", None),
        (">i2", "C", "zlib", ".", None),
        ("<u8", "F", "zlib", "/", None),
        ("<f2", "C", "bz2", ".", None),
        (">f4", "F", "zstd", ".", None),
        ("<f8", "C", "lz4", ".", None),
        (">c16", "F", "blosc", "/", None),
        ("|S3", "C", "blosc", ".", None),
        ("<U2", "F", "lzma", ".", None),
        (">U2", "C", "zlib", ".", None),
        ("<i4", "C", "zlib", ".", [{"id": "delta", "dtype": "<i4"}]),
        ("<i4", "F", "zlib", ".", [{"id": "shuffle", "elementsize": 4}]),
        ("<i4", "C", "zlib", ".", [{"id": "fletcher32"}]),
    ],
)
def test_version_2(tmp_path: Path, write, dtype, order, compressor, separator, filters) -> None:
    fill = {"b": False, "c": [0.0, 0.0], "S": "", "U": ""}.get(np.dtype(dtype).kind, 0)
    document = {
        "zarr_format": 2, "shape": SHAPE, "chunks": CHUNKS, "dtype": dtype, "fill_value": fill,
        "order": order, "compressor": COMPRESSORS[compressor], "filters": filters,
        "dimension_separator": separator,
    }  # fmt: skip
    (tmp_path / ".zarray").write_text(json.dumps(document))
    values = elements(dtype)
    little = values.astype(values.dtype.newbyteorder("<"))
    write(little.tobytes())
    found = np.asarray(zarr.open_array(tmp_path, mode="r", zarr_format=2)[...])
    assert found.astype(little.dtype).tobytes() == little.tobytes()
    # The chunk of nothing but the fill value.
    assert not (tmp_path / f"1{separator}0").exists()
    assert (tmp_path / f"3{separator}1").exists()
    if filters is None and compressor not in ("lz4", "lzma") and values.dtype.kind not in "SU":
        spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}}
        found = np.asarray(ts.open(spec, read=True).result().read().result())
        assert found.astype(little.dtype).tobytes() == little.tobytes()


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
