"""Copies from each kind of source that can be mounted are equal to what it holds."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import icechunk
import numpy as np
import pytest
import zarr

import zarrfs
from tests.interop.foreign.netcdf import VARIABLES, write_file, write_references
from tests.remote_server.server import RemoteServer

pytestmark = [pytest.mark.timeout(120), pytest.mark.filterwarnings("ignore")]

MEMORY = 16 << 20
OPTIONS = zarrfs.SourceOptions(memory=MEMORY)
VALUES = np.random.default_rng(6).integers(0, 1 << 16, (4, 1 << 20)).astype("u2")
# A stored object is larger than what is in memory as a whole.
LARGE: dict[str, Any] = {"chunks": (1, 1 << 18), "shards": (4, 1 << 20), "compressors": None}


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a NetCDF file and references to it."""
    folder = tmp_path_factory.mktemp("weather")
    write_file(folder / "weather.nc")
    write_references(folder / "weather.nc", folder / "weather.json")
    return folder


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with RemoteServer() as server:
        server.make_bucket("bucket")
        yield server


@pytest.mark.parametrize("name", ["weather.nc", "weather.json"])
def test_a_netcdf_file_and_references_to_it(weather, tmp_path, name):
    zarrfs.copy(weather / name, tmp_path / "b", options=OPTIONS, verify=True)
    with h5py.File(weather / "weather.nc") as file:
        for path in VARIABLES:
            with zarrfs.open_array(tmp_path / "b" / path) as copy:
                values = np.asarray(file[path][()])
                assert np.asarray(copy[...]).astype(values.dtype).tobytes() == values.tobytes()


def test_a_snapshot_of_icechunk(tmp_path):
    icechunk.set_logs_filter("off")
    place = tmp_path / "repository"
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(place)))
    session = repository.writable_session("main")
    root = zarr.group(session.store, attributes={"title": "first"})
    root.create_array("a/large", data=VALUES, chunks=(2, 1 << 18))
    root.create_array("inline", data=np.arange(10), chunks=(3,))
    first = session.commit("first")
    session = repository.writable_session("main")
    zarr.open_group(session.store)["inline"][:] = 9
    session.commit("second")
    zarrfs.copy(f"icechunk://@{first}::{place}", tmp_path / "b", options=OPTIONS, verify=True)
    copy = zarr.open_group(tmp_path / "b", mode="r")
    assert dict(copy.attrs) == {"title": "first"}
    assert np.array_equal(copy["a/large"][...], VALUES)
    assert np.array_equal(copy["inline"][...], np.arange(10))


def test_a_zip_file_with_large_objects(tmp_path):
    zarr.create_array(tmp_path / "a", data=VALUES, **LARGE)
    shutil.make_archive(str(tmp_path / "c"), "zip", tmp_path / "a")
    result = zarrfs.copy(tmp_path / "c.zip", tmp_path / "b", options=OPTIONS, verify=True)
    assert result.arrays[0].decoded == 0
    assert (tmp_path / "b/c/0/0").read_bytes() == (tmp_path / "a/c/0/0").read_bytes()


def test_a_bucket_with_large_objects(server, tmp_path):
    zarr.create_array(tmp_path / "a", data=VALUES, **LARGE)
    options = zarrfs.SourceOptions(memory=MEMORY, storage_options=server.s3_options())
    zarrfs.copy(tmp_path / "a", "s3://bucket/a", options=options, verify=True)
    zarrfs.copy("s3://bucket/a", tmp_path / "b", options=options, verify=True)
    assert (tmp_path / "b/c/0/0").read_bytes() == (tmp_path / "a/c/0/0").read_bytes()
    zarrfs.copy("s3://bucket/a", "s3://bucket/c", options=options, chunks=[2, 1 << 18])
    zarrfs.copy("s3://bucket/c", tmp_path / "d", options=options, codecs="zstd:1", verify=True)
    assert np.array_equal(zarr.open_array(tmp_path / "d", mode="r")[...], VALUES)
    assert json.loads(server.objects.buckets["bucket"]["a/zarr.json"].data)["shape"] == [4, 1 << 20]
