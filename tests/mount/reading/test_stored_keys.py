"""A mount is also a store: Zarr libraries that open it read what the source says."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import xarray
import zarr

from tests.conftest import Mounter
from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.format.chunk_layout import DefaultKeys, FanoutKeys, SuffixKeys, V2Keys
from zarrfs.fs.nodes.stored_keys import StoredKeys

pytestmark = [
    pytest.mark.timeout(180),
    # zarr-python says of each view that it is no node.
    pytest.mark.filterwarnings("ignore:Object at"),
]

VALUES = np.arange(1, 1 + 7 * 9, dtype="<i4").reshape(7, 9)
DOT = {"name": "default", "separator": "."}
ARRAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "v3": (VALUES, {"chunks": (3, 4)}),
    "v3 with dots": (VALUES, {"chunks": (3, 4), "chunk_key_encoding": DOT}),
    "v3 with shards": (VALUES, {"chunks": (1, 2), "shards": (3, 4)}),
    "v3 of one axis": (VALUES[0], {"chunks": (4,)}),
    "v3 of one element": (np.array(5, "u2"), {}),
    "v2": (VALUES, {"chunks": (3, 4), "zarr_format": 2}),
    "v2 with slashes": (
        VALUES,
        {
            "chunks": (3, 4),
            "zarr_format": 2,
            "chunk_key_encoding": {"name": "v2", "separator": "/"},
        },
    ),
    "v2 in Fortran's order": (VALUES, {"chunks": (3, 4), "zarr_format": 2, "order": "F"}),
    "v2 of one element": (np.array(5, "u2"), {"zarr_format": 2}),
    "strings": (np.array(["a", "bcd", ""], "O"), {"chunks": (2,), "dtype": str}),
}


def make(place: Path, name: str) -> Any:
    values, options = ARRAYS[name]
    options = dict(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtype = options.pop("dtype", None)
        if dtype is None:
            return zarr.create_array(place, data=values, fill_value=9, **options)[...]
        array = zarr.create_array(place, shape=values.shape, dtype=dtype, **options)
        array[...] = values
        return array[...]


@pytest.mark.parametrize("options", ["ro", "rw"])
def test_other_libraries_read_the_same(tmp_path: Path, mount_daemon: Mounter, options):
    source = tmp_path / "a"
    zarr.create_group(source)
    expected = {name: make(source / name, name) for name in ARRAYS}
    mnt = mount_daemon(source, options).path
    for name, values in expected.items():
        check_shown(source / name, mnt / name, values)
    for name in ("v3", "v3 with shards", "v2", "v2 with slashes"):
        driver = "zarr" if name.startswith("v2") else "zarr3"
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{mnt / name}/"}}
        found = tensorstore.open(spec, read=True).result().read().result()
        np.testing.assert_array_equal(found, expected[name])


@pytest.mark.parametrize(("name", "option"), [("v2", "rw"), ("v3 of one axis", "region=0:1")])
def test_zarr_python_reads_an_array_that_is_the_source(
    tmp_path: Path, mount_daemon: Mounter, name, option
):
    expected = make(tmp_path / "a", name)
    check_shown(tmp_path / "a", mount_daemon(tmp_path / "a", option).path, expected)


def check_shown(source: Path, shown: Path, values: Any) -> None:
    np.testing.assert_array_equal(zarr.open_array(shown, mode="r")[...], values)
    for stored in source.rglob("*"):
        if stored.is_file():
            file = shown / stored.relative_to(source)
            assert file.read_bytes() == stored.read_bytes()
            assert file.stat().st_size == stored.stat().st_size


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_xarray_reads_the_same(tmp_path: Path, mount_daemon: Mounter, zarr_format, consolidated):
    source = tmp_path / "set.zarr"
    written = xarray.Dataset(
        {"t": (("y", "x"), VALUES.astype("f4"), {"units": "K"})},
        {"x": np.arange(9.0), "y": np.arange(7.0)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written.to_zarr(source, zarr_format=zarr_format, consolidated=consolidated)
        mnt = mount_daemon(source).path
        with xarray.open_zarr(mnt, consolidated=consolidated) as found:
            xarray.testing.assert_identical(found.load(), xarray.open_zarr(source).load())


def test_keys_are_not_listed_and_others_do_not_exist(tmp_path: Path, mount_daemon: Mounter):
    make(tmp_path / "a", "v3")
    (tmp_path / "a/c/0/1").unlink()
    mnt = mount_daemon(tmp_path / "a").path
    assert "c" not in os.listdir(mnt)
    assert (mnt / "c/0").is_dir()
    assert os.listdir(mnt / "c/0") == []
    for key in ("c/0/1", "c/0/3", "c/3/0", "c/00/0", "c/-1/0", "c/0/x", "c/0/0/0", "d", "c/\u0661"):
        with pytest.raises((FileNotFoundError, NotADirectoryError)):
            os.stat(mnt / key)
    with pytest.raises(OSError, match="Read-only file system"):
        (mnt / "c/0/0").write_bytes(b"x")


@pytest.mark.parametrize("name", ["v3", "v2"])
def test_keys_of_an_array_that_is_not_served(tmp_path: Path, mount_daemon: Mounter, name):
    zarr.create_group(tmp_path / "g", zarr_format=3)
    make(tmp_path / "g/a", name)
    document = tmp_path / "g/a" / ("zarr.json" if name == "v3" else ".zarray")
    document.write_text(document.read_text().replace('"int32"', '"x32"').replace('"<i4"', '"<x4"'))
    mnt = mount_daemon(tmp_path / "g", quiet=False).path
    assert (mnt / "a/zarrfs-note.txt").exists()
    for key in ("c", "0.0", "c.0.0", "0"):
        with pytest.raises(OSError, match="not supported"):
            os.stat(mnt / "a" / key)
    assert not (mnt / "a/d").exists()
    assert not (mnt / "c").exists()


def write_over(path: Path) -> None:
    with open(path, "r+b", buffering=0) as file:
        file.write(b"x")


def test_keys_cannot_be_written(tmp_path: Path, mount_daemon: Mounter):
    make(tmp_path / "a", "v3")
    before = (tmp_path / "a/c/0/0").read_bytes()
    mnt = mount_daemon(tmp_path / "a", "rw").path
    for change in (
        lambda path: path.write_bytes(b"x"),
        write_over,
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 0),
    ):
        with pytest.raises(PermissionError):
            change(mnt / "c/0/0")
    assert (tmp_path / "a/c/0/0").read_bytes() == before


def test_a_chunk_that_is_written_later_is_found(tmp_path: Path, mount_daemon: Mounter):
    make(tmp_path / "a", "v3")
    stored = tmp_path / "a/c/0/1"
    data = stored.read_bytes()
    stored.unlink()
    mnt = mount_daemon(tmp_path / "a").path
    assert not (mnt / "c/0/1").exists()
    stored.write_bytes(data)
    assert (mnt / "c/0/1").read_bytes() == data


def test_an_object_that_changes_while_it_is_read_is_an_error(tmp_path: Path, mount_daemon: Mounter):
    make(tmp_path / "a", "v3")
    stored = tmp_path / "a/c/0/0"
    mnt = mount_daemon(tmp_path / "a").path
    with open(mnt / "c/0/0", "rb", buffering=0) as file:
        assert len(file.read(4)) == 4
        stored.with_suffix(".new").write_bytes(bytes(100))
        stored.with_suffix(".new").rename(stored)
        with pytest.raises(OSError, match="Input/output error"):
            file.read(4)
    assert (mnt / "c/0/0").read_bytes() == bytes(100)


@pytest.mark.parametrize("options", ["rw", "rw,resize"])
def test_changes_are_stored_before_a_library_reads(tmp_path: Path, mount_daemon: Mounter, options):
    zarr.create_group(tmp_path / "g")
    names = ("v3", "v3 with shards", "v2")
    for name in names:
        make(tmp_path / "g" / name, name)
    daemon = mount_daemon(tmp_path / "g", f"{options},flush_delay=1000")
    for path in (daemon.path / name for name in names):
        with open(path / "array.bin", "r+b", buffering=0) as file:
            for value in range(3):
                file.seek(0)
                assert file.write(np.full(VALUES.shape, value, "<i4").tobytes()) == VALUES.nbytes
                found = zarr.open_array(path, mode="r")[...]
                np.testing.assert_array_equal(found, np.full(VALUES.shape, value))


def test_changes_that_cannot_be_stored_are_no_missing_chunk(tmp_path: Path, mount_daemon: Mounter):
    source = tmp_path / "a"
    make(source, "v3")
    for stored in (source / "c").rglob("*"):
        if stored.is_file():
            stored.unlink()
            stored.mkdir()  # nothing can be stored there
    daemon = mount_daemon(source, "rw,flush_delay=1000", quiet=False)
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    try:
        os.pwrite(file, VALUES.tobytes(), 0)
        with pytest.raises(OSError) as caught:
            os.stat(daemon.path / "c/0/0")
        assert not isinstance(caught.value, FileNotFoundError)
        for stored in (source / "c").glob("*/*"):
            stored.rmdir()
    finally:
        os.close(file)
    np.testing.assert_array_equal(zarr.open_array(daemon.path, mode="r")[...], VALUES)


@pytest.mark.parametrize(
    "encoding",
    [DefaultKeys(), DefaultKeys("."), V2Keys(), V2Keys("/"), SuffixKeys(DefaultKeys(), ".tif"),
     SuffixKeys(DefaultKeys("."), ".x"), SuffixKeys(V2Keys("/"), ".y")],
)  # fmt: skip
@pytest.mark.parametrize("counts", [(), (3,), (2, 3), (2, 1, 2)])
def test_every_key_leads_to_its_object(encoding, counts):
    grid = ChunkGrid.regular(counts, tuple(1 for _ in counts))
    keys = StoredKeys(grid, encoding)
    seen = set()
    for index in np.ndindex(*counts):
        local = prefix = None
        for name in encoding.key(index).split("/"):
            local = keys.child(prefix, name)
            assert local is not None
            prefix = keys.prefix(local)
            seen.add(local)
        assert keys.is_file(prefix)
        assert keys.index(prefix) == index
        assert keys.child(None, encoding.key(tuple(i + 5 for i in index or (5,)))) is None
    assert max(seen) < keys.stop


def test_keys_of_another_kind_are_no_missing_chunks():
    keys = StoredKeys(ChunkGrid.regular((3, 3), (1, 1)), FanoutKeys())
    with pytest.raises(Exception, match="are not shown"):
        keys.child(None, "c")
