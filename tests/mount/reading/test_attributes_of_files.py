"""What `stat` and extended attributes say is true, because programs rely on it."""

import os
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from tests.conftest import Mounter

pytestmark = pytest.mark.timeout(180)

COPIES = {
    "tar": 'mkdir "$2"; tar -C "$1" -Scf - . | tar -C "$2" -xf -',
    "cp": 'cp -r --sparse=always "$1" "$2"',
    "cp by blocks": 'cp -r --sparse=auto "$1" "$2"',
    "rsync": 'rsync -rS "$1/" "$2"',
}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    """Arrays without stored chunks, with another fill value than zero, with some chunks stored."""
    place = tmp_path / "group"
    made = zarr.create_group(place)
    zeros = {"shape": (64, 64), "chunks": (16, 16), "dtype": "u2"}
    made.create_array("zeros", **zeros)
    made.create_array("sevens", **zeros, fill_value=7)
    made.create_array("negative_zeros", shape=(64,), chunks=(16,), dtype="f4", fill_value=-0.0)
    some = made.create_array("some", **zeros)
    some[20:24, 40:] = 5
    shards = made.create_array("shards", **(zeros | {"shards": (32, 32)}), fill_value=3)
    shards[0, 0] = 9
    made.create_array("texts", shape=(4,), chunks=(2,), dtype=str)
    return place


def contents(place: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and ".zarrfs" not in path.parts
    }


def test_sparse_copies_have_the_same_bytes(group: Path, tmp_path: Path, mount_daemon: Mounter):
    mnt = mount_daemon(group, "views=all").path
    for number, script in enumerate(COPIES.values()):
        copy = tmp_path / f"copy{number}"
        subprocess.run(["sh", "-ec", script, "sh", mnt, copy], check=True, timeout=120)
        expected = contents(mnt)
        assert any(name.endswith("group.h5") for name in expected)
        assert contents(copy) == expected, script


@pytest.mark.parametrize("options", ["ro", "rw"])
def test_a_file_without_blocks_is_zeros(group: Path, mount_daemon: Mounter, options):
    mnt = mount_daemon(group, "views=all", options).path
    empty = [
        path for path in mnt.rglob("*")
        if path.is_file() and ".zarrfs" not in path.parts and not path.stat().st_blocks
    ]  # fmt: skip
    assert all(not any(path.read_bytes()) for path in empty)
    if options == "ro":
        assert mnt / "zeros/array.bin" in empty


def test_blocks_of_changes_that_are_not_stored(group: Path, tmp_path: Path, mount_daemon: Mounter):
    mnt = mount_daemon(group, "rw,flush_delay=1000").path
    with open(mnt / "zeros/array.bin", "r+b", buffering=0) as file:
        file.write(b"\1" * 100)
        copy = ["tar", "-C", mnt / "zeros", "-Scf", tmp_path / "a.tar", "array.bin"]
        subprocess.run(copy, check=True, timeout=60)
    subprocess.run(["tar", "-C", tmp_path, "-xf", tmp_path / "a.tar"], check=True, timeout=60)
    assert (tmp_path / "array.bin").read_bytes()[:101] == b"\1" * 100 + b"\0"


@pytest.mark.parametrize("outside", [False, True])
def test_the_group_file_is_as_new_as_its_arrays(group: Path, mount_daemon: Mounter, outside):
    mnt = mount_daemon(group, "rw", "recheck=always").path
    before = (mnt / "group.h5").stat().st_mtime_ns
    assert before == max(before, *(p.stat().st_mtime_ns for p in mnt.glob("*/array.bin")))
    time.sleep(0.05)
    if outside:
        zarr.open_array(group / "some", mode="r+")[0, 0] = 8
    else:
        with open(mnt / "some/array.bin", "r+b") as file:
            file.write(b"\4\4")
    assert (mnt / "group.h5").stat().st_mtime_ns > before


def test_the_group_file_has_the_shape_of_now(tmp_path: Path, mount_daemon: Mounter):
    made = zarr.create_group(tmp_path / "g")
    for name, rows in (("a", 3), ("none", 0)):
        made.create_array(name, shape=(rows, 4), chunks=(2, 4), dtype="u1")
    mnt = mount_daemon(tmp_path / "g", "rw,resize").path
    for rows in range(4, 9):
        with h5py.File(mnt / "group.h5") as file:
            assert file["a"].shape == (rows - 1, 4)
            assert file["none"].shape == (rows - 4, 4)
        for name in ("a", "none"):
            with open(mnt / name / "array.bin", "ab") as file:
                file.write(bytes([rows] * 4))


@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_the_data_type_is_that_of_the_bytes(tmp_path: Path, mount_daemon: Mounter, byteorder):
    zarr.create_group(tmp_path / "g")
    arrays = {dtype: np.arange(3).astype(dtype) for dtype in ("u2", "f8", "i1", "bool")}
    for dtype, values in arrays.items():
        zarr.create_array(tmp_path / "g" / dtype, data=values)
    mnt = mount_daemon(tmp_path / "g", f"byteorder={byteorder}").path
    for dtype, values in arrays.items():
        name = os.getxattr(mnt / dtype / "array.bin", "user.zarrfs.dtype").decode()
        np.testing.assert_array_equal(np.fromfile(mnt / dtype / "array.bin", name), values)
        np.testing.assert_array_equal(np.fromfile(mnt / dtype / "chunks/0", name), values)
