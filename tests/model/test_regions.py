"""Any region of any array, mounted as an array of its own, against numpy."""

import shutil
from io import BytesIO

import numpy as np
import pytest
import zarr
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fs.loop import Loop
from tests.fs.writable import Writable
from tests.model.arrays import models
from tests.soak import examples
from zarrfs.errors import BudgetExceeded
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(300)


@st.composite
def regions(draw: st.DrawFn, shape: tuple[int, ...]):
    """The text, and the index that numpy takes."""
    parts, index = [], []
    for extent in shape:
        start = draw(st.integers(0, extent))
        stop = draw(st.integers(start, extent))
        if start < extent and draw(st.booleans()) and draw(st.booleans()):
            parts.append(str(start - draw(st.sampled_from((0, extent)))))
            index.append(start)
        else:
            parts.append(f"{start or ''}:{stop}")
            index.append(slice(start, stop))
    return ",".join(parts), tuple(index)


@examples(25)
@given(data=st.data(), model=models())
def test_any_region(loop: Loop, tmp_path_factory, data, model):
    assume(model.shape)
    text, index = data.draw(regions(model.shape))
    order, memory = (
        data.draw(st.sampled_from("CF")),
        data.draw(st.sampled_from((1 << 20, 64 << 20))),
    )
    path = tmp_path_factory.mktemp("region") / "a"
    model.write(path)
    numbers = model.numbers()
    config = {"order": order, "region": text, "flush_delay": 1e6, "views": ("npy", "fits")}
    try:
        mount = Writable(loop, LocalStore(path), memory=memory, **config)
    except BudgetExceeded:
        mount = Writable(loop, LocalStore(path), **config)
    try:
        check_and_change(data, mount, numbers, index, order)
    finally:
        mount.close()
    assert np.asarray(zarr.open_array(path, mode="r")[...]).tobytes() == numbers.tobytes()
    shutil.rmtree(path)


def check_and_change(data, mount, numbers, index, order):
    part = numbers[index]
    assert {"chunks", "shards"}.isdisjoint(mount.ls())
    loaded = np.load(BytesIO(mount.read("array.npy")))
    assert loaded.shape == part.shape
    assert loaded.tobytes() == part.tobytes()
    content = bytearray(part.tobytes(order=order))
    assert mount.stat("array.bin").size == len(content)
    file = mount.edit("array.bin")
    for _ in range(6):
        offset = data.draw(st.integers(0, len(content)))
        size = data.draw(st.integers(0, len(content) - offset))
        if data.draw(st.booleans()):
            assert file.read(offset, size) == content[offset : offset + size]
        else:
            item = numbers.dtype.itemsize
            offset, size = offset // item * item, size // item * item
            new = numbers.dtype.type(data.draw(st.integers(0, 1))).tobytes() * (size // item)
            content[offset : offset + size] = new
            # In order, as a program that writes a file.
            step = data.draw(st.sampled_from((item, 16 * item, 4096 * item)))
            step = max(step, -(-size // 50) // item * item)
            for at in range(0, size, step):
                file.write(offset + at, new[at : at + step])
    assert mount.read("array.bin") == content
    file.close()
    dtype = numbers.dtype
    numbers[index] = np.frombuffer(bytes(content), dtype).reshape(part.shape, order=order)


def test_headers_and_attributes_of_a_region(tmp_path, loop):
    numbers = np.arange(6 * 7 * 8, dtype="f4").reshape(6, 7, 8)
    zarr.create_array(
        tmp_path / "a", data=numbers, chunks=(2, 3, 4), dimension_names=("z", "y", "x"),
        attributes={"dimension_units": ["4 nm", "2 nm", "1 nm"]},
    )  # fmt: skip
    mount = Writable(loop, LocalStore(tmp_path / "a"), region="3,2:6,1:8", views=("nhdr", "h5"))
    try:
        header = mount.read("array.nhdr").decode()
        assert "sizes: 7 4\n" in header
        assert 'labels: "x" "y"\n' in header
        assert "space origin: (1,4)\n" in header
        assert mount.read("array.bin") == numbers[3, 2:6, 1:8].tobytes()
        assert mount.xattrs()["user.zarrfs.region"] == b"3,2:6,1:8"
    finally:
        mount.close()


@pytest.mark.parametrize(
    ("region", "reason"),
    [
        ("0:7", "leaves axis 0, which has 6 elements"),
        ("0:1,0:1,0:1", "has 3 axes, the array has 2"),
        ("6", "leaves axis 0"),
    ],
)
def test_a_region_that_the_array_does_not_have(region, reason, tmp_path, loop):
    zarr.create_array(tmp_path / "a", shape=(6, 7), chunks=(2, 3), dtype="f4")
    with pytest.raises(Exception, match=reason):
        Writable(loop, LocalStore(tmp_path / "a"), region=region)


def test_a_region_of_a_group_is_refused(tmp_path, loop):
    zarr.create_group(tmp_path / "g").create_array("a", shape=(6,), chunks=(2,), dtype="f4")
    with pytest.raises(Exception, match="a region is one of an array, and this is a group"):
        Writable(loop, LocalStore(tmp_path / "g"), region="0:3")
