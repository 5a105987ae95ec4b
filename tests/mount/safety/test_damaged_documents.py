"""Documents that are damaged, or contradict each other, hide and harm no elements."""

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


def test_arrays_in_a_group_with_a_damaged_document_are_served(tmp_path, mount_daemon: Mounter):
    source = tmp_path / "source"
    write(source, GROUPS[3])
    for number, (version, damaged, _) in enumerate(DAMAGED_GROUPS):
        write(source / str(number), GROUPS[version] | damaged)
        write_array(source / f"{number}/x", version)
    mnt = mount_daemon(source, quiet=False).path
    for number, (_, damaged, reason) in enumerate(DAMAGED_GROUPS):
        check_group(mnt, mnt / str(number), damaged, reason)


@pytest.mark.parametrize("number", [1, 4, 6, 7], ids=lambda number: DAMAGED_GROUPS[number][2])
def test_the_same_at_the_root(tmp_path, mount_daemon: Mounter, number):
    version, damaged, reason = DAMAGED_GROUPS[number]
    write(tmp_path / "source", GROUPS[version] | damaged)
    write_array(tmp_path / "source/x", version)
    mnt = mount_daemon(tmp_path / "source", quiet=False).path
    check_group(mnt, mnt, damaged, reason)


def check_group(mnt: Path, shown: Path, damaged: dict[str, bytes], reason: str) -> None:
    assert (shown / "x/array.bin").read_bytes() == b"\1\2"
    assert reason in (shown / "zarrfs-note.txt").read_text()
    for name, data in damaged.items():
        assert (shown / name).read_bytes() == data
    errors = json.loads((mnt / ".zarrfs/stats.json").read_text())["errors"]["last"]
    assert any(reason in error["reason"] for error in errors)


@pytest.mark.parametrize("options", ["ro", "rw"])
def test_elements_beside_damaged_attributes_are_served(tmp_path, mount_daemon: Mounter, options):
    source = tmp_path / "source"
    write(source, GROUPS[2])
    for number, attributes in enumerate((b"", b'{"a": ', b'{"a": "\xb5m"}', b"[1, 2]")):
        write_array(source / str(number), 2)
        write(source / str(number), {".zattrs": attributes})
    mnt = mount_daemon(source, options, quiet=False).path
    for number in range(4):
        assert (mnt / f"{number}/array.bin").read_bytes() == b"\1\2"
        assert (mnt / f"{number}/chunks/0").read_bytes() == b"\1\2"
        assert (mnt / f"{number}/zarrfs-note.txt").read_text().startswith(".zattrs: is not ")


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
