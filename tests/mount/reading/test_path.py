"""`--path` and `-o path`: a mount of what lies below a path of the source."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import h5py
import numpy as np
import pytest
import zarr

from tests.conftest import run_zarrfs
from tests.remote_server import Fault, RemoteServer
from zarrfs.daemon.own_mount_point import mount_name
from zarrfs.fuse.mount_table import topmost

_SCALE = {"type": "scale", "scale": [2, 0.5, 0.25]}
_MOVE = {"type": "translation", "translation": [10, 20, 30]}
_AXES = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]


def image(path, zarr_format=3):
    """An image with a level at its top, and one deeper."""
    datasets = [
        {"path": inside, "coordinateTransformations": [_SCALE, _MOVE]}
        for inside in ("0", "low/image")
    ]
    said = {"multiscales": [{"axes": _AXES, "datasets": datasets}]}
    attributes = said if zarr_format == 2 else {"ome": said}
    group = zarr.create_group(path, attributes=attributes, zarr_format=zarr_format)
    for number, dataset in enumerate(datasets):
        data = np.arange(60, dtype="u2").reshape(3, 4, 5) + 100 * number
        group.create_array(dataset["path"], data=data, chunks=(2, 4, 5), fill_value=0)
    return path


def names(path):
    return sorted(os.listdir(path))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array_is_as_below_a_mount_of_the_whole(zarr_format, tmp_path, mounted):
    source = image(tmp_path / "image.zarr", zarr_format)
    whole = mounted(source, "views=all")
    for path in ("0", "low/image"):
        array = mounted(source, "views=all", f"path=/{path}/")
        assert names(array) == sorted([*names(whole / path), ".zarrfs"])
        for name in (
            "array.bin",
            "array.nhdr",
            "array.tif",
            "array.h5",
            "array.nii",
            "chunks/1/0/0",
        ):
            assert (array / name).read_bytes() == (whole / path / name).read_bytes(), name
        assert b"space origin: (30,20,10)" in (array / "array.nhdr").read_bytes()
        assert np.array_equal(zarr.open_array(array, mode="r")[...], zarr.open_group(source)[path])
        assert json.loads((array / ".zarrfs/config.json").read_text())["options"]["path"] == path


def test_a_group_shows_only_what_lies_in_it(tmp_path, mounted):
    source = image(tmp_path / "image.zarr")
    whole, low = mounted(source), mounted(source, "path=low")
    assert names(low) == [".zarrfs", "group.h5", "image", "zarr.json"]
    assert names(low / "image") == names(whole / "low/image")
    header = (whole / "low/image/array.nhdr").read_bytes()
    assert (low / "image/array.nhdr").read_bytes() == header
    assert os.path.samefile(low / "image/..", low)


def test_a_path_in_a_zip_and_below_consolidated_metadata(tmp_path, mounted, mount_daemon):
    source = image(tmp_path / "image.zarr", 2)
    zarr.consolidate_metadata(source, zarr_format=2)
    (source / "low/image/.zarray").unlink()
    subprocess.run(
        [sys.executable, "-m", "zipfile", "-c", tmp_path / "a.zip", *sorted(source.iterdir())],
        check=True,
        timeout=60,
    )
    whole = (mounted(source) / "low/image/array.npy").read_bytes()
    for given in (source, tmp_path / "a.zip"):
        daemon = mount_daemon(given, "path=low")
        low = daemon.path
        assert (low / "image/array.npy").read_bytes() == whole
        assert (mounted(given, "path=low/image") / "array.npy").read_bytes() == whole
        daemon.signal(signal.SIGHUP)
        daemon.wait_for_log("read everything again", 60)
        assert names(low / "image")
        assert (low / "image/array.npy").read_bytes() == whole


def test_a_path_in_a_file_of_a_plain_directory(tmp_path, mounted):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/notes.txt").write_text("x")
    with h5py.File(tmp_path / "data/a.h5", "w") as file:
        file["g/x"] = np.arange(5, dtype="i4")
    for path, below in (("a.h5", "g/x"), ("a.h5/g", "x"), ("a.h5/g/x", "")):
        place = mounted(tmp_path / "data", f"path={path}")
        assert np.array_equal(np.load(place / below / "array.npy"), np.arange(5))
    place = mounted(tmp_path / "data/a.h5", "path=g")
    assert np.array_equal(np.load(place / "x/array.npy"), np.arange(5))


def test_changes_are_stored_and_listed_keys_stay(tmp_path, mount_daemon):
    source = image(tmp_path / "image.zarr")
    daemon = mount_daemon(source, "rw", "path=low")
    array = np.load(daemon.path / "image/array.npy", mmap_mode="r+")
    array[0, 0, 0] = 7
    array.flush()
    del array
    key = daemon.path / "image/c/1/0/0"
    assert key.read_bytes() == (source / "low/image/c/1/0/0").read_bytes()
    mount_daemon.end(daemon)
    assert zarr.open_array(source / "low/image")[0, 0, 0] == 7
    assert zarr.open_array(source / "0")[0, 0, 0] == 0


def refused(*arguments):
    done = run_zarrfs("mount", *arguments)
    assert topmost(str(arguments[1])) is None
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_a_path_that_is_not_there_is_refused(tmp_path):
    source, place = image(tmp_path / "image.zarr"), tmp_path / "mnt"
    place.mkdir()
    os.symlink("/", source / "out")
    said = f"zarrfs: {source}: no Zarr array or group at"
    assert refused(source, place, "--path", "1") == (1, f"{said} 1\n")
    assert refused(source, place, "--path", "0/c") == (1, f"{said} 0/c\n")
    assert refused(source, place, "-o", "rw,path=0/zarr.json") == (1, f"{said} 0/zarr.json\n")
    status, line = refused(source, place, "--path", "out/etc")
    assert (status, line.count("\n")) == (1, 1)
    assert "out" in line
    for path in ("..", "low/../0", "."):
        said = f"option path: {path!r} is not a path below the source, such as images/raw"
        assert refused(source, place, "--path", path) == (2, f"zarrfs: {said}\n")


def test_the_mount_point_that_zarrfs_makes_has_the_name_of_the_path():
    assert mount_name("low/image") == "image"


def test_a_path_of_references(tmp_path, mounted):
    zarray = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [4],
        "dtype": "|u1",
        "compressor": None,
        "fill_value": 0,
        "filters": None,
        "order": "C",
    }
    refs = {".zgroup": '{"zarr_format": 2}', "g/.zgroup": '{"zarr_format": 2}'}
    refs |= {"g/x/.zarray": json.dumps(zarray), "g/x/0": "abcd"}
    (tmp_path / "a.json").write_text(json.dumps({"version": 1, "refs": refs}))
    assert (mounted(tmp_path / "a.json", "path=g") / "x/array.bin").read_bytes() == b"abcd"
    assert (mounted(tmp_path / "a.json", "path=g/x") / "array.bin").read_bytes() == b"abcd"


def test_the_journal_of_one_path_waits_for_a_mount_of_it(tmp_path, mount_daemon, monkeypatch):
    source = image(tmp_path / "a.zarr")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    with RemoteServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        server.upload(source, "b")

        def mount(path):
            options = (f"path={path}", "rw,flush_delay=3600,drain_timeout=1")
            return mount_daemon("s3://b/a.zarr", *options, quiet=False)

        daemon = mount("low")
        whole = mount_daemon(source).path
        for name in ("array.nhdr", "array.npy"):
            given = (daemon.path / "image" / name).read_bytes()
            assert given == (whole / "low/image" / name).read_bytes()
        file = os.open(daemon.path / "image/array.bin", os.O_RDWR)
        os.pwrite(file, b"\7\0", 0)
        server.plan = lambda _method, _target: Fault.DROP
        daemon.signal(signal.SIGTERM)
        assert daemon.wait() != 0
        with suppress(OSError):
            os.close(file)
        assert "the next mount with -o rw stores them" in daemon.log
        server.plan = lambda _method, _target: None
        other = mount("0")
        assert (other.path / "array.bin").read_bytes()[:2] == b"\0\0"
        other.umount()
        again = mount("low")
        assert (again.path / "image/array.bin").read_bytes()[:2] == b"\7\0"
        again.umount()
        assert not list((tmp_path / "journal").rglob("*.*"))
