"""``zarrfs info``: what it says of arrays and groups, to people and to programs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pexpect
import pytest
import zarr

from tests.cli.in_process import in_process
from tests.conftest import run_zarrfs
from zarrfs.library.checking import stored_objects


def info(*arguments: object) -> str:
    done = in_process("info", *arguments)
    assert (done.status, done.stderr) == (0, ""), done
    return done.stdout


def rows(text: str) -> dict[str, str]:
    """The first line of each row by its label."""
    table = text.split("\n\n", maxsplit=1)[0].splitlines()[1:]
    return {line[2:15].strip(): line[15:] for line in table if line[2:15].strip()}


@pytest.fixture
def sharded(tmp_path):
    """100 x 200 x 300 in 5 x 10 x 15 shards, of which 2 x 3 x 1 are stored."""
    array = zarr.create_array(
        tmp_path / "a", shape=(100, 200, 300), dtype="uint16", chunks=(10, 10, 10),
        shards=(20, 20, 20), dimension_names=("z", "y", "x"),
        attributes={"who": "me", "dimension_units": ["40 nm", "4 nm", "4 nm"]},
    )  # fmt: skip
    array[:40, :60, 20:40] = np.random.default_rng(0).integers(0, 100, (40, 60, 20))
    return tmp_path / "a"


def test_an_array(sharded):
    said = rows(info(sharded))
    files = [path for path in (sharded / "c").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    assert len(files) == 6
    assert said["array"] == "Zarr 3"
    assert said["shape"] == "100x200x300 (z, y, x) in 40 nm, 4 nm, 4 nm"
    assert not any(label.startswith("axis") for label in said)
    assert said["data type"] == "uint16, 2 bytes"
    assert said["fill value"] == "0"
    assert said["chunks"] == "10x10x10 (1.95 KiB), 6000 of them (10x20x30)"
    assert said["shards"] == "20x20x20 (15.6 KiB), 750 of them (5x10x15)"
    assert "zstd(level=0, checksum=false)" in said["codecs"]
    assert said["size"] == "11.4 MiB (12000000 bytes)"
    ratio = 6 * 16000 / size
    assert said["stored"].startswith("6 of 750 shards, ")
    assert said["stored"].endswith(f" ({size} bytes), compressed {ratio:.3g}:1")
    assert said["attributes"] == "who = me"


def test_the_facts_of_elements(tmp_path):
    zarr.create_array(
        tmp_path / "t", shape=(4, 5), dtype="i2", dimension_names=("y", "x"),
        attributes={
            "scale_factor": 0.5, "add_offset": 10, "units": "K", "_FillValue": -9,
            "proj:code": "EPSG:32633", "spatial:transform": [10, 0, 500, 0, -10, 460],
        },
    )  # fmt: skip
    said = rows(info(tmp_path / "t"))
    assert said["value"].endswith("0.5 + 10")
    assert (said["missing"], said["unit"], said["crs"]) == ("-9", "K", "EPSG:32633")
    assert said["transform"] == "500, 10, 0, 460, 0, -10"


def test_the_picture_shows_where_data_are(sharded):
    picture = info(sharded).split("\n\n")[1].splitlines()
    assert picture[0] == "  stored shards (· none … █ all)"
    # Two of five shards along the first axis.
    stored, empty = "·▒" + 13 * "·", 15 * "·"
    assert [line.strip() for line in picture[1:]] == [stored] * 3 + [empty] * 7


def test_in_a_terminal_and_in_one_without_unicode(sharded):
    for encoding, glyphs in (("utf-8", ("·▒···", "█ all")), ("ascii", (".+...", "# all"))):
        shown, status = pexpect.run(
            f"{sys.executable} -m zarrfs info {sharded}",
            env={**os.environ, "PYTHONIOENCODING": encoding, "TERM": "xterm"},
            withexitstatus=True,
            timeout=60,
            encoding=encoding,
        )
        assert status == 0, shown
        assert all(glyph in shown for glyph in glyphs)


def test_json(sharded):
    told = json.loads(info(sharded, "--json"))
    assert (told["node_type"], told["shape"]) == ("array", [100, 200, 300])
    assert (told["chunk_shape"], told["chunk_counts"]) == ([10, 10, 10], [10, 20, 30])
    assert (told["shard_shape"], told["shard_counts"]) == ([20, 20, 20], [5, 10, 15])
    assert told["bytes"] == 12_000_000
    stored = told["stored"]
    assert (stored["present"], stored["possible"], stored["complete"]) == (6, 750, True)
    assert {"name": "array.bin", "bytes": 12_000_000, "files": None} in told["served"]
    assert {"name": "shards", "bytes": None, "files": 750} in told["served"]


def test_what_is_said_to_be_served_is_served(sharded, mounted):
    told = json.loads(info(sharded, "--json"))["served"]
    mount = mounted(sharded)
    assert {entry["name"] for entry in told} | {".zarrfs"} == {p.name for p in mount.iterdir()}
    for entry in told:
        if entry["files"] is None:
            assert (mount / entry["name"]).stat().st_size == entry["bytes"]


def test_an_array_of_many_chunks_is_listed_instead(tmp_path):
    array = zarr.create_array(
        tmp_path / "a", shape=(10**9, 10**9), dtype="u1", chunks=(10, 10), compressors=None
    )
    for i, j in ((0, 0), (5, 7), (10**8 - 1, 10**8 - 1)):
        array[10 * i, 10 * j] = 1
    (tmp_path / "a" / "c" / "notes").write_text("no chunk")
    text = info(tmp_path / "a")
    assert rows(text)["stored"] == f"3 of {10**16} chunks, 300 bytes, compressed 1:1"
    picture = text.split("\n\n")[1].splitlines()
    assert (len(picture), max(map(len, picture[1:]))) == (17, 68)
    assert picture[1][4] == picture[16][67] == "░"


def test_what_is_not_counted_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_objects, "LOCAL", stored_objects.Limits(asked=4, listed=8))
    array = zarr.create_array(
        tmp_path / "a", shape=(10, 10), dtype="u1", chunks=(1, 1), compressors=None
    )
    array[0, :5] = 1
    assert "5 of 100 chunks, 4 bytes in 4 of them" in info(tmp_path / "a")
    array[1, :5] = 1
    assert "at least " in rows(info(tmp_path / "a"))["stored"]
    assert not json.loads(info(tmp_path / "a", "--json"))["stored"]["complete"]


@pytest.fixture
def hierarchy(tmp_path):
    root = zarr.open_group(tmp_path / "g", mode="w", attributes={"a": 1})
    root.create_array("raw", shape=(100, 10), dtype="f4")
    labels = root.create_group("lab\x1b[31mels")
    labels.create_array("x", shape=(3,), dtype="i1")
    labels.create_group("deep").create_array("y", shape=(), dtype="i1")
    (tmp_path / "g" / "zbad").mkdir()
    (tmp_path / "g" / "zbad" / "zarr.json").write_text("{}")
    return tmp_path / "g"


def test_a_group_is_a_tree(hierarchy):
    assert info(hierarchy).splitlines() == [
        f"{hierarchy}",
        "  group, Zarr 3",
        "  attributes   a = 1",
        "  ├── lab\\x1b[31mels/",
        "  │   ├── deep/",
        "  │   │   └── y  scalar int8, chunks scalar, Zarr 3",
        "  │   └── x  3 int8, chunks 3, Zarr 3",
        "  ├── raw  100x10 float32, chunks 100x10, Zarr 3",
        "  └── zbad  problem: zbad/zarr.json: zarr_format is None, expected 3",
    ]
    assert "and more" in info(hierarchy, "--nodes", "2")
    told = json.loads(info(hierarchy, "--json"))
    assert [node["node_type"] for node in told["nodes"]] == [
        "group", "group", "array", "array", "array", None,
    ]  # fmt: skip


def test_a_node_below_a_source(hierarchy):
    assert rows(info(hierarchy, "--path", "raw"))["shape"] == "100x10"
    assert "└── y" in info(hierarchy, "--path", "lab\x1b[31mels/deep")
    done = in_process("info", hierarchy, "--path", "raw/none")
    assert (done.status, "no Zarr array or group at raw/none" in done.stderr) == (1, True)


def test_an_array_that_cannot_be_served_is_shown_with_the_reason(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(3,), dtype="i4")
    document = json.loads((tmp_path / "a" / "zarr.json").read_text())
    document["codecs"].append({"name": "unheard-of"})
    (tmp_path / "a" / "zarr.json").write_text(json.dumps(document))
    said = rows(info(tmp_path / "a"))
    assert "unheard-of" in said["problem"]
    assert said["array"] == "that cannot be served"


def test_strings_and_empty_arrays(tmp_path):
    zarr.create_array(tmp_path / "s", shape=(2,), dtype=str)
    said = rows(info(tmp_path / "s"))
    assert said["data type"] == "string, of any length"
    assert "size" not in said
    zarr.create_array(tmp_path / "e", shape=(0, 3), dtype="i4")
    assert rows(info(tmp_path / "e"))["stored"] == "0 of 0 chunks"


def test_through_a_pipe_and_a_zip_file(sharded, tmp_path):
    import shutil

    archive = shutil.make_archive(str(tmp_path / "z"), "zip", sharded)
    done = run_zarrfs("info", archive)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(done.stdout)["stored"].startswith("6 of 750 shards")


def test_what_is_not_there(tmp_path):
    for source in (tmp_path / "none", tmp_path):
        done = in_process("info", source)
        assert (done.status, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert str(source) in done.stderr


def test_levels(tmp_path):
    """`tree` is the same command, and `ls` shows one level."""
    group = zarr.create_group(tmp_path / "g")
    group.create_array("a", shape=4, dtype="i4")
    group.create_group("b").create_array("c", shape=4, dtype="i4")
    whole = info(tmp_path / "g")
    assert in_process("tree", tmp_path / "g").stdout == whole
    assert info(tmp_path / "g", "--depth", 2) == whole
    one = in_process("ls", tmp_path / "g").stdout
    assert one == info(tmp_path / "g", "--depth=1") == whole[: whole.rindex("\n", 0, -1) + 1]


def test_a_hierarchy_deeper_than_python_calls(tmp_path, monkeypatch):
    levels = sys.getrecursionlimit() + 200
    monkeypatch.chdir(tmp_path)
    for _ in range(levels):
        Path("zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
        os.mkdir("a")
        os.chdir("a")
    try:
        done = run_zarrfs(
            "ls", "--json", "--depth", str(levels), "--nodes", str(levels), str(tmp_path)
        )
    finally:
        # pytest cannot: it would end a later run of the tests with a RecursionError.
        os.chdir(tmp_path)
        subprocess.run(["rm", "-rf", tmp_path / "a"], check=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "a/" * (levels - 2) + "a" in done.stdout
