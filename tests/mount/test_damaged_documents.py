"""Documents that are damaged, or contradict each other, hide and harm no elements."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

import zarrfs
from tests.conftest import Mounter

pytestmark = pytest.mark.timeout(120)

V2_ARRAY = {
    "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C",
    "compressor": None, "filters": None, "fill_value": 0,
}  # fmt: skip
V3_ARRAY = {
    "zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0,
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
    "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
}  # fmt: skip
GROUPS = {
    2: {".zgroup": b'{"zarr_format": 2}'},
    3: {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'},
}
UNKNOWN_MEMBER = b'{"zarr_format": 3, "node_type": "group", "extra": {"a": 1}}'
DAMAGED_GROUPS = [
    (2, {".zattrs": b""}, ".zattrs: is not JSON: it is empty"),
    (2, {".zattrs": b'{"a": '}, ".zattrs: is not JSON: its text ends or is wrong in line 1"),
    (2, {".zattrs": b'{"a": "\xb5m"}'}, ".zattrs: is not JSON: byte 7 is not UTF-8"),
    (2, {".zattrs": b"[]"}, ".zattrs: is not a JSON object"),
    (2, {".zgroup": b""}, ".zgroup: is not JSON: it is empty"),
    (2, {".zgroup": b"null"}, ".zgroup: is not an object with zarr_format 2"),
    (2, {".zmetadata": b'{"zarr_consolidated_format": 1, "meta'}, ".zmetadata: is not JSON"),
    (3, {"zarr.json": UNKNOWN_MEMBER}, "unknown member 'extra' that must be understood"),
    (3, {"zarr.json": b""}, "zarr.json: is not JSON: it is empty"),
    (3, {"zarr.json": b'{"zarr_format": 3, "node_type": "group", "attributes": 5}'},
     "attributes: expected an object"),
]  # fmt: skip


def write(place: Path, files: dict[str, bytes]) -> None:
    place.mkdir(exist_ok=True)
    for name, data in files.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(data)


def write_array(place: Path, version: int) -> None:
    if version == 2:
        write(place, {".zarray": json.dumps(V2_ARRAY).encode(), "0": b"\1\2"})
    else:
        write(place, {"zarr.json": json.dumps(V3_ARRAY).encode(), "c/0": b"\1\2"})


@pytest.mark.parametrize("at_root", [False, True])
@pytest.mark.parametrize(("version", "damaged", "reason"), DAMAGED_GROUPS)
def test_arrays_in_a_group_with_a_damaged_document_are_served(
    tmp_path: Path, mount_daemon: Mounter, version, damaged, reason, at_root
):
    source = tmp_path / "source"
    write(source, GROUPS[3])
    group = source if at_root else source / "group"
    write(group, GROUPS[version] | damaged)
    if at_root and version == 2:
        (source / "zarr.json").unlink()
    write_array(group / "x", version)
    mnt = mount_daemon(source, quiet=False).path
    shown = mnt if at_root else mnt / "group"
    assert (shown / "x/array.bin").read_bytes() == b"\1\2"
    assert reason in (shown / "zarrfs-note.txt").read_text()
    for name, data in damaged.items():
        assert (shown / name).read_bytes() == data
    errors = json.loads((mnt / ".zarrfs/stats.json").read_text())["errors"]["last"]
    assert any(reason in error["reason"] for error in errors)


@pytest.mark.parametrize("attributes", [b"", b'{"a": ', b'{"a": "\xb5m"}', b"[1, 2]"])
@pytest.mark.parametrize("options", ["ro", "rw"])
def test_elements_beside_damaged_attributes_are_served(
    tmp_path: Path, mount_daemon: Mounter, attributes, options
):
    source = tmp_path / "source"
    write_array(source, 2)
    write(source, {".zattrs": attributes})
    mnt = mount_daemon(source, options, quiet=False).path
    assert (mnt / "array.bin").read_bytes() == b"\1\2"
    assert (mnt / "chunks/0").read_bytes() == b"\1\2"
    assert (mnt / "zarrfs-note.txt").read_text().startswith(".zattrs: is not ")


def test_a_damaged_document_of_an_array_hides_nothing_but_the_array(
    tmp_path: Path, mount_daemon: Mounter
):
    source = tmp_path / "source"
    write(source, GROUPS[3])
    write_array(source / "x", 3)
    write_array(source / "cut", 3)
    write(source / "cut", {"zarr.json": b'{"zarr_format": 3, "node_type": "array"'})
    mnt = mount_daemon(source, quiet=False).path
    assert (mnt / "x/array.bin").read_bytes() == b"\1\2"
    assert sorted(entry.name for entry in (mnt / "cut").iterdir()) == [
        "zarr.json", "zarrfs-note.txt"
    ]  # fmt: skip


@pytest.fixture(params=[2, 3])
def outdated(tmp_path: Path, request) -> Path:
    """A group whose consolidated metadata lack an array and have another one before a resize."""
    source = tmp_path / "outdated"
    group = zarr.create_group(source, zarr_format=request.param)
    group.create_array("grown", shape=(4,), chunks=(2,), dtype="u1")[:] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # v3 has none by its specification
        zarr.consolidate_metadata(source, zarr_format=request.param)
    grown = zarr.open_array(source / "grown", mode="r+")
    grown.resize((6,))
    grown[4:] = 9
    zarr.create_array(source / "new", data=np.arange(3, dtype="u1"), zarr_format=request.param)
    return source


@pytest.mark.parametrize("option", ["consolidated=auto", "consolidated=only"])
def test_consolidated_metadata_decide(outdated: Path, mount_daemon: Mounter, option):
    mnt = mount_daemon(outdated, option).path
    assert (mnt / "grown/array.bin").read_bytes() == b"\1" * 4
    assert not (mnt / "new").exists()


@pytest.mark.parametrize("option", ["consolidated=never", "rw"])
def test_outdated_consolidated_metadata_are_not_used(outdated: Path, mount_daemon: Mounter, option):
    mnt = mount_daemon(outdated, option).path
    assert (mnt / "grown/array.bin").read_bytes() == b"\1" * 4 + b"\x09" * 2
    assert (mnt / "new/array.bin").read_bytes() == b"\0\1\2"
    if option == "rw":
        with open(mnt / "grown/array.bin", "r+b") as file:
            file.write(b"\5" * 6)
        assert zarr.open_array(outdated / "grown")[:].tolist() == [5] * 6


def test_a_program_writes_by_the_own_document(outdated: Path):
    with zarrfs.open_array(str(outdated), path="grown", writable=True) as array:
        assert array.shape == (6,)
        array[:] = 7
    assert zarr.open_array(outdated / "grown")[:].tolist() == [7] * 6
    with zarrfs.open_array(str(outdated), path="grown") as array:
        assert array.shape == (4,)
