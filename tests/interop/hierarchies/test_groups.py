"""Groups within groups, with consolidated metadata and without, as zarr-python writes them."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.interop.served_files import DirectFiles

PATHS = ("top", "a/first", "a/second", "a/b/deep", "a/b/c/deeper", "with space/größe")
CONSOLIDATED = {"none": (), "root": ("",), "middle": ("a",), "root_and_middle": ("a", "")}


@pytest.fixture(params=CONSOLIDATED)
def group(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = zarr.open_group(tmp_path, mode="w", zarr_format=3, attributes={"title": "test"})
    for number, path in enumerate(PATHS):
        root.create_array(path, data=_data(number), chunks=(2, 2), shards=(4, 4), fill_value=-1)
    root.create_group("a/empty")
    with warnings.catch_warnings():
        # That it is not part of the specification yet.
        warnings.simplefilter("ignore")
        for path in CONSOLIDATED[request.param]:
            zarr.consolidate_metadata(tmp_path, path=path or None, zarr_format=3)
    return tmp_path


def _data(number: int) -> np.ndarray:
    return np.arange(35, dtype="<i4").reshape(7, 5) + 1000 * number


@pytest.fixture
def files(group: Path, open_direct: Callable[[object], DirectFiles]) -> DirectFiles:
    return open_direct(group)


def test_arrays(files: DirectFiles, group: Path) -> None:
    for number, path in enumerate(PATHS):
        assert files.read(f"{path}/array.bin") == _data(number).tobytes()
        assert files.read(f"{path}/zarr.json") == (group / path / "zarr.json").read_bytes()


def test_names(files: DirectFiles) -> None:
    def children(path: str) -> set[str]:
        return set(files.names(path)) - {".zarrfs", "zarr.json"}

    assert children("") == {"top", "a", "with space"}
    assert children("a") == {"first", "second", "b", "empty"}
    assert children("a/b") == {"deep", "c"}
    assert children("a/empty") == set()
    assert children("with space") == {"größe"}


def test_documents(files: DirectFiles, group: Path) -> None:
    for path in ("", "a/", "a/b/", "with space/"):
        document = files.read(f"{path}zarr.json")
        assert document == (group / path / "zarr.json").read_bytes()
        assert json.loads(document)["node_type"] == "group"


def test_opened_below_the_root(group: Path, open_direct: Callable[[object], DirectFiles]) -> None:
    files = open_direct(group / "a/b")
    assert files.read("deep/array.bin") == _data(3).tobytes()
    assert files.read("c/deeper/array.bin") == _data(4).tobytes()
