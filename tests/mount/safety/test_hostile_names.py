"""What hostile authors call their nodes: all that is listed can be opened, and a walk ends."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.conftest import Mounter
from tests.fs.documents import array_document

pytestmark = pytest.mark.timeout(120)

GROUP = '{"zarr_format": 3, "node_type": "group"}'
ARRAY = array_document((8,), (4,), data_type="uint16")
ELEMENTS = bytes(range(1, 9))

ANYWHERE = (
    "array.bin", "array.npy", "chunks", "shards", "group.h5", "c", "zarr.json.d", "a", "A",
    "new\nline", "a\x1b[31mred", "\u202egnp", " ", "-rf", "...", "back\\slash", "a:b", "a%2fb",
)  # fmt: skip
OUTSIDE = (
    "../out", "/abs", "a/../../b", "a//b", "nul\0", "\ud800", "x" * 300, ".", "..",
    "left/./y", "left/../b", "left//y", "left/nul\0",
)  # fmt: skip


def walked(mnt: Path) -> dict[bytes, int]:
    """The size of each file; all are read."""
    found = {}

    def fail(error: OSError) -> None:
        raise error

    for directory, _, names in os.walk(os.fsencode(mnt), onerror=fail):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, os.fsencode(mnt))] = len(file.read())
    return found


def stored(place: bytes) -> None:
    os.makedirs(place + b"/c")
    for name, data in ((b"zarr.json", ARRAY), (b"c/0", ELEMENTS), (b"c/1", ELEMENTS)):
        with open(place + b"/" + name, "wb") as file:
            file.write(data)


def test_directories(tmp_path: Path, mount_daemon: Mounter):
    source = tmp_path / "source"
    source.mkdir()
    (source / "zarr.json").write_text(GROUP)
    names = [*map(os.fsencode, ANYWHERE), b"\xff\xfe", b"x" * 255]
    for name in names:
        stored(os.fsencode(source) + b"/" + name)
    stored(os.fsencode(source) + b"/.zarrfs")
    deep = source
    for _ in range(150):
        deep /= "d"
        deep.mkdir()
        (deep / "zarr.json").write_text(GROUP)
    daemon = mount_daemon(source)
    found = walked(daemon.path)
    for name in names:
        assert found[name + b"/array.bin"] == 16, name
        assert found[name + b"/chunks/0"] == 8
    assert b"d/" * 150 + b"zarr.json" in found
    # The directory of the mount itself.
    assert b".zarrfs/stats.json" in found
    assert b".zarrfs/array.bin" not in found


def test_links_that_lead_to_where_they_are(tmp_path: Path, mount_daemon: Mounter):
    """Each would double, at each level, what there is to see."""
    source = tmp_path / "source"
    for name in ("a", "b"):
        (source / name).mkdir(parents=True)
        (source / name / "zarr.json").write_text(GROUP)
        stored(os.fsencode(source / name / "array"))
    (source / "zarr.json").write_text(GROUP)
    for name, target in (("here", "."), ("also", "../source"), ("itself", "itself"),
                         ("a/up", ".."), ("a/b", "../b"), ("b/a", "../a")):  # fmt: skip
        (source / name).symlink_to(target)
    daemon = mount_daemon(source)
    found = {os.fsdecode(name) for name in walked(daemon.path) if name.endswith(b"array.bin")}
    assert found == {f"{group}/array/array.bin" for group in ("a", "b", "a/b", "b/a")}


@pytest.mark.parametrize("version", [2, 3])
def test_consolidated_metadata(tmp_path: Path, mount_daemon: Mounter, version: int):
    source = tmp_path / "source"
    source.mkdir()
    names = [*ANYWHERE, *OUTSIDE, "zarr.json", "ok/inner", "ok", "deep/" * 100 + "a", ""]
    if version == 3:
        metadata: dict[str, object] = {name: json.loads(ARRAY) for name in names}
        inline = {"kind": "inline", "must_understand": False, "metadata": metadata}
        document = {**json.loads(GROUP), "consolidated_metadata": inline}
        (source / "zarr.json").write_text(json.dumps(document))
    else:
        array = {"zarr_format": 2, "shape": [8], "chunks": [4], "dtype": "<u2", "order": "C",
                 "compressor": None, "fill_value": 0, "filters": None}  # fmt: skip
        metadata = {f"{name}/.zarray": array for name in names}
        (source / ".zgroup").write_text('{"zarr_format": 2}')
        document = {"zarr_consolidated_format": 1, "metadata": {".zgroup": {}, **metadata}}
        (source / ".zmetadata").write_text(json.dumps(document))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/c").mkdir()
    (tmp_path / "out/c/0").write_bytes(b"outside!")
    daemon = mount_daemon(source)
    found = walked(daemon.path)
    for name in ANYWHERE:
        assert found[os.fsencode(name) + b"/array.bin"] == 16, name
    assert found[b"ok/array.bin"] == 16
    shown = set(os.listdir(daemon.path))
    assert not shown & {"out", "abs", "b", "nul", "x" * 300, "left"}
    assert all("outside" not in name for name in shown)


def test_members_of_a_zip_file(tmp_path: Path, mount_daemon: Mounter):
    source = tmp_path / "source.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("zarr.json", GROUP)
        for name in (*ANYWHERE, "x" * 300, "../out", "/abs"):
            for member, data in (("zarr.json", ARRAY), ("c/0", ELEMENTS), ("c/1", ELEMENTS)):
                archive.writestr(zipfile.ZipInfo(f"{name}/{member}"), data)
    daemon = mount_daemon(source)
    found = walked(daemon.path)
    for name in ANYWHERE:
        assert found[os.fsencode(name) + b"/array.bin"] == 16, name
    assert not set(os.listdir(daemon.path)) & {"out", "abs", "x" * 300}


def test_names_in_the_log_are_no_lines_of_it(tmp_path: Path, mount_daemon: Mounter):
    source = tmp_path / "source"
    name = b"a\n2026-01-01 00:00:00,000 zarrfs[1] ERROR zarrfs: forged\x1b[2J\xff"
    stored(os.fsencode(source) + b"/" + name)
    (source / "zarr.json").write_text(GROUP)
    with open(os.fsencode(source) + b"/" + name + b"/c/0", "wb") as file:
        file.write(b"far too many bytes")
    daemon = mount_daemon(source, quiet=False)
    with (
        pytest.raises(OSError),
        open(os.fsencode(daemon.path) + b"/" + name + b"/array.bin") as file,
    ):
        file.read()
    daemon.wait_for_log("more than the 8 allowed")
    lines = daemon.log.splitlines()
    assert any("forged\\x1b[2J\\udcff/c/0" in line for line in lines)
    assert not any(line.startswith("2026-01-01") for line in lines)
    assert "\x1b" not in daemon.log
