"""Files of other formats, through references to the chunks in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .data_types import FILLS
from .documents import array_bytes, chunk_keys, sharding, zstd
from .netcdf import VARIABLES, write_file, write_references, write_v3_references
from .peers import WRITERS
from .served_files import DirectFiles, MountedFiles, ServedFiles
from .serving import check_served
from .spec import Spec


@dataclass(frozen=True)
class Referenced:
    """A NetCDF4 file and the references to it."""

    file: Path
    references: Path


@pytest.fixture(scope="module")
def referenced(tmp_path_factory: pytest.TempPathFactory) -> Referenced:
    directory = tmp_path_factory.mktemp("netcdf")
    found = Referenced(directory / "weather.nc", directory / "weather.json")
    write_file(found.file)
    write_references(found.file, found.references)
    return found


def check_variables(files: ServedFiles, file: Path) -> None:
    """Every variable against what the HDF5 library reads."""
    with h5py.File(file) as opened:
        for path in VARIABLES:
            dataset: Any = opened[path]
            elements = np.asarray(dataset[()])
            little = elements.astype(elements.dtype.newbyteorder("<"))
            assert files.read(f"{path}/array.bin") == little.tobytes(), path
            document = json.loads(files.read(f"{path}/.zarray"))
            assert document["dtype"] == elements.dtype.str, path
            assert document["chunks"] == list(dataset.chunks or dataset.shape), path
    assert json.loads(files.read(".zattrs"))["title"] == "Weather"
    assert json.loads(files.read("temperature/.zattrs"))["units"] == "K"


def test_the_file_is_what_it_should_be(referenced: Referenced) -> None:
    """Or the tests below would show less than they say."""
    with h5py.File(referenced.file) as file:
        assert file["temperature"].chunks == (2, 5, 4)
        assert file["temperature"].compression == "gzip"
        assert file["temperature"].shuffle
        assert file["pressure"].dtype == ">i2"
        assert file["elevation"].chunks is None
    stored = json.loads(referenced.references.read_text())["refs"]
    assert "pressure/0.0" in stored
    assert not [key for key in stored if key.startswith("never_written/0")]


SOURCES: dict[str, Callable[[Path], tuple[str, dict[str, object]]]] = {
    "path": lambda path: (f"reference::{path}", {}),
    "url": lambda path: (f"reference::file://{path}", {}),
    "options": lambda path: ("reference://", {"fo": str(path), "remote_protocol": "file"}),
    "cached": lambda path: (
        f"reference::simplecache::file://{path}",
        {"simplecache": {"cache_storage": str(path.parent / "cache")}},
    ),
}
"""How a user names references: as a source, and with storage options."""


@pytest.mark.parametrize("source", SOURCES)
def test_netcdf(
    source: str, referenced: Referenced, open_direct: Callable[..., DirectFiles]
) -> None:
    url, options = SOURCES[source](referenced.references)
    check_variables(open_direct(url, storage_options=options), referenced.file)


def test_one_variable(referenced: Referenced, open_direct: Callable[..., DirectFiles]) -> None:
    files = open_direct("reference://pressure", storage_options={"fo": str(referenced.references)})
    with h5py.File(referenced.file) as file:
        assert files.read("array.bin") == file["pressure"][()].astype("<i2").tobytes()


@pytest.mark.mount
@pytest.mark.parametrize("source", ["path", "options"])
def test_netcdf_mounted(
    source: str, referenced: Referenced, mount_daemon: Callable[..., Any]
) -> None:
    url, options = SOURCES[source](referenced.references)
    typed = [f"--storage-option={name}={value}" for name, value in options.items()]
    daemon = mount_daemon(url, command=(sys.executable, "-m", "zarrfs", "mount", *typed))
    check_variables(MountedFiles(daemon.path), referenced.file)


@pytest.mark.parametrize("sharded", [False, True])
def test_references_to_a_v3_store(
    sharded: bool, tmp_path: Path, open_direct: Callable[..., DirectFiles]
) -> None:
    codecs = [array_bytes(), zstd()]
    spec = Spec(
        "int32",
        FILLS["int32"][3],
        shape=(19, 23),
        stored=(8, 6),
        inner=(4, 3) if sharded else (8, 6),
        keys=chunk_keys("default", "/"),
        codecs=(sharding((4, 3), codecs),) if sharded else tuple(codecs),
    )
    data = spec.data(seed=1)
    store = tmp_path / "store"
    WRITERS["tensorstore"](store, spec, data)
    references = tmp_path / "store.json"
    write_v3_references(store, tmp_path / "blob", references)
    check_served(open_direct(f"reference::{references}"), spec, data)
