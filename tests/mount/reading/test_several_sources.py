"""A mount of several sources: a directory for each."""

import json
import os

import h5py
import numpy as np
import pytest
import zarr

from tests.conftest import COMMAND, run_zarrfs
from zarrfs.daemon.source.checks import check_sources_disjoint
from zarrfs.errors import StoreError, UsageError
from zarrfs.store.base import ANY, ByteRange
from zarrfs.store.joined import JoinedStores, names_of
from zarrfs.store.open import StoreConfig, open_store


@pytest.fixture
def sources(tmp_path):
    """Two arrays of one name, a group of version 2, and a file of HDF5."""
    for number, name in enumerate(("one/a.zarr", "two/a.zarr")):
        data = np.arange(30, dtype="i4").reshape(5, 6) + 100 * number
        zarr.create_array(tmp_path / name, data=data, chunks=(2, 6))
    group = zarr.create_group(tmp_path / "g.zarr", zarr_format=2)
    group.create_array("inner", shape=3, dtype="u2")[...] = [1, 2, 3]
    zarr.consolidate_metadata(tmp_path / "g.zarr")
    with h5py.File(tmp_path / "h.h5", "w") as file:
        file["d"] = np.arange(4.0)
    return [tmp_path / name for name in ("one/a.zarr", "two/a.zarr", "g.zarr", "h.h5")]


def mount(mount_daemon, sources, *options):
    command = (*COMMAND, "mount", *sources[:-1])
    return mount_daemon(sources[-1], *options, command=command).path


def test_each_is_a_directory_named_after_it(mount_daemon, sources):
    path = mount(mount_daemon, sources)
    assert {"a", "a-2", "g", "h", "group.h5"} <= set(os.listdir(path))
    first, second = (np.arange(30, dtype="<i4").reshape(5, 6) + 100 * n for n in (0, 1))
    assert (path / "a/array.bin").read_bytes() == first.tobytes()
    assert (path / "a-2/chunks/1/0").read_bytes() == second[2:4].tobytes()
    assert np.load(path / "g/inner/array.npy", mmap_mode="r").tolist() == [1, 2, 3]
    assert (path / "h/d/array.bin").read_bytes() == np.arange(4.0).tobytes()
    with h5py.File(path / "group.h5") as file:
        assert np.array_equal(file["a-2"], second)
    # A library that opens the mount sees the same.
    assert np.array_equal(zarr.open_group(path, mode="r")["a-2"], second)
    said = json.loads((path / ".zarrfs/config.json").read_text())["source"]
    assert said.startswith(f"{sources[0]}, {sources[1]}, ")


def test_writes_go_to_their_source(mount_daemon, sources):
    path = mount(mount_daemon, sources[:2], "rw")
    for name, value in (("a", 7), ("a-2", 8)):
        array = np.load(path / name / "array.npy", mmap_mode="r+")
        array[3, 3] = value
        array.flush()
    assert zarr.open_array(sources[0])[3, 3] == 7
    assert zarr.open_array(sources[1])[3, 3] == 8
    assert zarr.open_array(sources[1])[3, 4] == 122


def test_one_path_of_one_source(mount_daemon, sources):
    path = mount(mount_daemon, sources, "path=g/inner")
    assert (path / "array.bin").read_bytes() == np.array([1, 2, 3], "<u2").tobytes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "rw"), "h.h5: h: chunks of a file of another format"),
        (("-o", "assume_metadata=x"), "option assume_metadata is for one source"),
    ],
)
def test_what_is_refused(sources, tmp_path, options, said):
    (tmp_path / "m").mkdir()
    done = run_zarrfs("mount", *sources, tmp_path / "m", *options)
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    missing = run_zarrfs("mount", sources[0], tmp_path / "none", tmp_path / "m")
    assert (missing.returncode, missing.stderr.count("\n")) == (1, 1)
    assert f"{tmp_path / 'none'}: no such file" in missing.stderr


@pytest.mark.parametrize("options", ["rw", "rw,overlay=overlay"])
def test_no_array_is_written_under_two_names(tmp_path, sources, options):
    """Each name has caches of its own: a page of one would undo what came through the other."""
    (tmp_path / "m").mkdir()
    (tmp_path / "link").symlink_to("one")
    group = tmp_path / "g.zarr"
    for one, other in [(group, group / "inner"), (sources[0], tmp_path / "link" / "a.zarr")]:
        for both in ((one, other), (other, one), (f"file://{one}", other)):
            done = run_zarrfs("mount", *both, tmp_path / "m", "-o", options)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
            assert "lies in" in done.stderr
    assert not (tmp_path / "m").is_mount()


def test_remote_sources_that_lie_in_each_other():
    check_sources_disjoint(
        ["s3://b/a.zarr", "s3://b/a.zarr2", "s3://c/a.zarr", "/s3/b", "gs://b/a.zarr/x"]
    )
    for other in ("s3://b/a.zarr/", "s3://b/a.zarr//x", "s3://b", "s3://b/a.zarr"):
        with pytest.raises(UsageError, match="lies in"):
            check_sources_disjoint(["s3://b/a.zarr", other])


def test_the_store(tmp_path):
    """Each key lies in one store; errors name the key with the store's name."""
    inner = []
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        inner.append(open_store(str(tmp_path / name), StoreConfig()))
    store = JoinedStores(dict(zip(("x", "y"), inner, strict=True)))
    store.put("y/c/0", [b"abc"], expected=ANY)
    assert (tmp_path / "y/c/0").read_bytes() == b"abc"
    assert [blob.data for blob in store.get_ranges("y/c/0", [ByteRange(-2, 2)])] == [b"bc"]
    found = store.get_many(["y/c/0", "x/c/0", "nowhere/c"], limit=10)
    assert [None if blob is None else bytes(blob.data) for blob in found] == [b"abc", None, None]
    with pytest.raises(StoreError, match=r"^y/c/0: "):
        store.get("y/c/0", limit=1)
    assert sorted(store.list_dir("")) == [".zgroup", "x/", "y/", "zarr.json"]
    assert list(store.list_dir("y")) == ["c/"]
    assert list(store.list_dir("nowhere")) == []
    for key in ("zarr.json", "new", "nowhere/c"):
        with pytest.raises(StoreError):
            store.put(key, [b""], expected=ANY)
    store.delete("y/c/0", expected=ANY)
    assert store.info("y/c/0") is None
    (document,) = store.get_ranges("zarr.json", [ByteRange(0, 1000)])
    assert json.loads(document.data)["node_type"] == "group"
    store.close()


def test_names():
    assert names_of(["p/a", "q/a", "a-2", "b"], lambda source: source[-3:].strip("/pq")) == [
        "a",
        "a-2",
        "a-2-2",
        "b",
    ]
