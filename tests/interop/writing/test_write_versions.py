"""Arrays of version 1, written by zarrfs, as numcodecs reads their chunks."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

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
