"""Structs: every field has the byte order of the mount, whatever it is stored in."""

import io
from typing import Any

import numpy as np
import pytest

from docs.format_support.samples import Sample, v1, v2, v3, write

pytestmark = pytest.mark.timeout(60)

MIXED = [["a", ">i2"], ["b", "<f8"], ["c", ">f4", [2]], ["d", [["e", ">u4"], ["f", "|S3"]]]]
FIELDS = {
    "fields": [
        {"name": "a", "data_type": "int16"},
        {"name": "b", "data_type": "float64"},
        {"name": "c", "data_type": "complex64"},
        {"name": "d", "data_type": "bfloat16"},
    ]
}
STRUCT = {"name": "struct", "configuration": FIELDS}
FILL = {"a": 0, "b": 0, "c": [0, 0], "d": 0}


def _stored(endian: str) -> Sample:
    codecs = [{"name": "bytes", "configuration": {"endian": endian}}]
    return Sample(3, v3(STRUCT, fill_value=FILL, codecs=codecs))


SAMPLES = {
    "v1": Sample(1, v1(dtype=MIXED, fill_value=None)),
    "v2": Sample(2, v2(MIXED, fill_value=None)),
    "v2 in F order": Sample(2, v2(MIXED, fill_value=None, order="F")),
    "v3 stored little": _stored("little"),
    "v3 stored big": _stored("big"),
}


def swapped(elements: np.ndarray[Any, Any]) -> bytes:
    """Each number's bytes reversed; numpy does not know those of bfloat16."""
    dtype = elements.dtype
    if dtype.names is None:
        width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        if dtype.kind in "SV" and dtype.name != "bfloat16":
            return elements.tobytes()
        return np.frombuffer(elements.tobytes(), "u1").reshape(-1, width)[:, ::-1].tobytes()
    flat = elements.reshape(-1)
    return b"".join(
        swapped(flat[i : i + 1][name]) for i in range(len(flat)) for name in dtype.names
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_little_endian_by_default(name, tmp_path, mount):
    elements = write(SAMPLES[name], tmp_path / "a")
    m = mount(tmp_path / "a")
    assert m.read("array.bin") == elements.tobytes()
    assert m.read("chunks/0/0") == elements.tobytes()
    # What write() expects is what numpy has in memory on this machine.
    assert all(elements.dtype[field].byteorder != ">" for field in elements.dtype.names)


@pytest.mark.parametrize("name", SAMPLES)
def test_big_endian_where_asked_for(name, tmp_path, mount):
    elements = write(SAMPLES[name], tmp_path / "a")
    m = mount(tmp_path / "a", byteorder="big")
    assert m.read("array.bin") == swapped(elements)
    assert m.read("chunks/0/0") == swapped(elements)
    if "array.npy" in m.ls():
        loaded = np.load(io.BytesIO(m.read("array.npy")))
        assert loaded.dtype == elements.dtype.newbyteorder(">")
        assert loaded.astype(elements.dtype).tobytes() == elements.tobytes()


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_a_field_as_bytes(byteorder, tmp_path, mount):
    """Spelled out, for one who reads with nothing but a C struct."""
    sample = Sample(2, v2([["a", ">i2"], ["b", "<u4"]], shape=[1], chunks=[1], fill_value=None))
    write(sample, tmp_path / "a")
    (tmp_path / "a/0").write_bytes(b"\x01\x02" + b"\x06\x05\x04\x03")
    expected = {"little": "020106050403", "big": "010203040506"}[byteorder]
    assert mount(tmp_path / "a", byteorder=byteorder).read("array.bin").hex() == expected
