"""``zarrfs resize``: every axis longer or shorter, and nothing dropped unasked."""

import os
import sys
from functools import partial

import numpy as np
import pexpect
import pytest
import zarr

from tests.cli.in_process import one_line
from tests.conftest import run_zarrfs

resize = partial(one_line, "resize")


@pytest.fixture(params=["chunked", "sharded", "version 2"])
def array(request, tmp_path):
    """7 x 9 elements from 1 up, in chunks of 2 x 3 (and shards of 4 x 6); fill value 5."""
    options = {"shards": (4, 6)} if request.param == "sharded" else {}
    array = zarr.create_array(
        tmp_path / "a", shape=(7, 9), dtype="i4", chunks=(2, 3), fill_value=5,
        zarr_format=2 if request.param == "version 2" else 3, **options,
    )  # fmt: skip
    array[:] = values()
    return tmp_path / "a"


def values():
    return np.arange(1, 64, dtype="i4").reshape(7, 9)


def stored(path):
    return sum(file.is_file() and file.name[0] not in ".z" for file in path.rglob("*"))


def test_shrinking_drops_data_only_when_forced(array):
    before = stored(array)
    told = resize(array, "--shape", "3,4", fails=1)
    assert "stored objects reach beyond the new shape" in told
    assert "--force drops them" in told
    assert (zarr.open_array(array)[:] == values()).all()
    resize(array, "--shape", "3,4", "--force")
    assert (zarr.open_array(array)[:] == values()[:3, :4]).all()
    assert 0 < stored(array) < before


@pytest.mark.parametrize("shape", [3, 99])
def test_an_object_that_cannot_be_looked_at_is_named(tmp_path, shape):
    """A link without a target, as git-annex leaves it, beyond the smaller of two shapes."""
    path = tmp_path / "a"
    zarr.create_array(path, shape=(7,), dtype="i4", chunks=(2,))[:] = 1
    key = "c/3" if shape == 3 else "c/9"
    (path / key).unlink(missing_ok=True)
    (path / key).symlink_to("nowhere")
    told = resize(path, "--shape", shape, "--force", fails=1)
    reason = f"{key}: is missing: a symbolic link on its path has no target"
    assert told == f"zarrfs: {path} is not resized: {reason}"
    assert zarr.open_array(path).shape == (7,)
    (path / key).unlink()
    resize(path, "--shape", shape, "--force")


def test_a_dry_run_changes_nothing(array):
    told = resize(array, "--shape", "0,0", "--dry-run")
    assert told.startswith(f"would resize {array}: 7x9 to 0x0; ")
    assert f"new shape, {stored(array)} wholly" in told
    assert (zarr.open_array(array)[:] == values()).all()


def test_an_array_below_a_group(tmp_path):
    group = zarr.open_group(tmp_path / "g", mode="w")
    group.create_group("h").create_array("a", shape=(3,), dtype="i4")
    resize(tmp_path / "g", "--path", "h/a", "--shape", "30")
    assert zarr.open_array(tmp_path / "g" / "h" / "a").shape == (30,)


def test_progress_on_a_terminal_and_silence_in_a_pipe(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(300,), dtype="i4", chunks=(1,))[:] = 1
    done = run_zarrfs("resize", tmp_path / "a", "--shape", "200", "--force")
    assert (done.returncode, done.stderr) == (0, "")
    shown, status = pexpect.run(
        f"{sys.executable} -m zarrfs resize {tmp_path / 'a'} --shape 50 --force",
        withexitstatus=True,
        timeout=60,
        encoding="utf-8",
        env=dict(os.environ),
    )
    assert status == 0, shown
    assert "150 chunks of 150 chunks" in shown
    assert stored(tmp_path / "a") == 50


def test_what_is_mounted_for_writing_is_left_alone(tmp_path, mount_daemon):
    array = tmp_path / "a"
    zarr.create_array(array, shape=(7, 9), dtype="i4")
    mount_daemon(array)
    resize(array, "--shape", "8,9")
    daemon = mount_daemon(array, "rw")
    told = resize(array, "--shape", "9,9", fails=1)
    assert f"is mounted for writing at {daemon.path}" in told
    resize(tmp_path, "--path", "a", "--shape", "9,9", fails=1)
    daemon.umount()
    resize(array, "--shape", "9,9")


@pytest.mark.parametrize(
    ("shape", "status", "reason"),
    [
        ("3", 2, "--shape has 1 length, and the array has rank 2"),
        ("3,x", 2, "is not a list of whole numbers"),
        ("3,-1", 2, "is not a list of whole numbers"),
    ],
)
def test_wrong_shapes(array, shape, status, reason):
    assert reason in resize(array, "--shape", shape, fails=status)


def test_wrong_sources(tmp_path):
    zarr.open_group(tmp_path / "g", mode="w")
    assert "is a group" in resize(tmp_path / "g", "--shape", "3", fails=2)
    assert "no such file" in resize(tmp_path / "none", "--shape", "3", fails=1)
