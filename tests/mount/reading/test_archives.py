"""Zip files as sources, by their path and in a directory of data of any kind."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import Mounter

pytestmark = pytest.mark.timeout(120)

VALUES = np.arange(6, dtype="u1")


def write_zip(path: Path, *folders: str, compression: int = zipfile.ZIP_STORED) -> None:
    """A zip with a group, of one array, in each of the folders."""
    store = path.with_suffix(".source")
    zarr.create_group(store).create_array("x", data=VALUES, chunks=(4,))
    with zipfile.ZipFile(path, "w", compression) as archive:
        for folder in folders:
            for file in sorted(store.rglob("*")):
                if file.is_file():
                    archive.write(file, f"{folder}{file.relative_to(store)}")


@pytest.mark.parametrize("name", ["image.ozx", "image.OZX", "image.zip"])
@pytest.mark.parametrize("in_a_directory", [False, True])
def test_a_zip_file_is_a_store(tmp_path: Path, mount_daemon: Mounter, name, in_a_directory):
    source = tmp_path / "source"
    source.mkdir()
    write_zip(source / name, "")
    mnt = mount_daemon(source if in_a_directory else source / name).path
    array = mnt / name / "x" if in_a_directory else mnt / "x"
    assert (array / "array.bin").read_bytes() == VALUES.tobytes()


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("in_a_directory", [False, True])
def test_a_zip_file_of_several_stores_is_a_directory_of_them(
    tmp_path: Path, mount_daemon: Mounter, compression, in_a_directory
):
    source = tmp_path / "source"
    source.mkdir()
    write_zip(source / "two.zip", "a.zarr/", "b.zarr/", compression=compression)
    mnt = mount_daemon(source if in_a_directory else source / "two.zip").path
    top = mnt / "two.zip" if in_a_directory else mnt
    assert {"a.zarr", "b.zarr"} == {path.name for path in top.iterdir()} - {".zarrfs"}
    for name in ("a.zarr", "b.zarr"):
        assert (top / name / "x/array.bin").read_bytes() == VALUES.tobytes()
