"""``zarrfs check``: what it finds, what it saves, and how it ends."""

import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, group_document, sharding

BLOSC = {
    "name": "blosc",
    "configuration": {
        "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "typesize": 2, "blocksize": 0
    },
}  # fmt: skip

NUMBERS = np.arange(40 * 60, dtype="<i2").reshape(40, 60)
SHARDED = {"chunks": (5, 10), "shards": (20, 30)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A group of a plain array, a sharded one, and an old one."""
    root = tmp_path / "h"
    group = zarr.create_group(root)
    group.create_array("plain", data=NUMBERS, chunks=(10, 20))
    inner = group.create_group("inner")
    inner.create_array("sharded", data=NUMBERS, **SHARDED)
    zarr.create_array(root / "old", data=NUMBERS, chunks=(20, 20), zarr_format=2)
    return root


@pytest.fixture
def check(run):
    """``check(source, *options)``: exit status and the JSON document."""

    def run_check(source, *options):
        result = run("check", "--json", source, *options)
        assert result.stderr == ""
        return result.status, json.loads(result.stdout)

    return run_check


def kinds(document):
    return [(problem["kind"], problem["key"]) for problem in document["problems"]]


def stored(path):
    return np.asarray(zarr.open_array(path, mode="r")[...])


def test_nothing_is_wrong(tree, check, run):
    status, document = check(tree)
    assert status == 0
    assert document == {
        "source": str(tree),
        "arrays": 3,
        "groups": 2,
        "objects": 12 + 4 + 6,
        "chunks": 12 + 48 + 6,
        "unverified": 12 + 48 + 6,
        "problems": [],
        "notes": [],
        "not_shown": 0,
        "repaired": 0,
    }
    result = run("check", tree, "--path", "inner/sharded")
    assert result.stdout == (
        "nothing is wrong: 1 array, 0 groups, 4 stored objects, 48 chunks; 48 chunks have no "
        "checksum, so damage that still decodes does not show\n"
    )
    assert check(tree / "old")[1]["chunks"] == 6


def test_bad_chunks(tree, check, run):
    chunks = tree / "plain" / "c"
    (chunks / "0" / "1").write_bytes(b"")
    whole = (chunks / "2" / "2").read_bytes()
    (chunks / "2" / "2").write_bytes(whole[:-3])
    (chunks / "3" / "0").unlink()
    status, document = check(tree)
    assert status == 1
    assert sorted(kinds(document)) == [("chunk", "plain/c/0/1"), ("chunk", "plain/c/2/2")]
    assert document["problems"][0]["unreadable"] == 1
    # Nothing of a chunk can be saved, so it stays an error and does not become fill value.
    assert check(tree, "--repair")[0] == 1
    assert (chunks / "2" / "2").read_bytes() == whole[:-3]
    result = run("check", tree)
    assert result.status == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert any(line.startswith("chunk: plain/c/0/1: ") for line in lines)
    assert lines[-1].startswith("2 problems: 3 arrays")
    lines = run("check", "--repair", tree, "--path", "plain").stdout.splitlines()
    said = "; not repaired: nothing of a chunk can be saved"
    assert all(line.endswith(said) for line in lines[:2])


@pytest.mark.parametrize(
    ("codecs", "unverified"),
    [
        ([LITTLE], 2),
        ([LITTLE, BLOSC], 2),
        ([LITTLE, ZSTD], 2),
        ([LITTLE, {"name": "zstd", "configuration": {"level": 1, "checksum": True}}], 0),
        ([LITTLE, GZIP], 0),
        ([LITTLE, CRC32C], 0),
        ([LITTLE, {"name": "numcodecs.lzma", "configuration": {}}], 0),
        ([LITTLE, {"name": "numcodecs.lzma", "configuration": {"check": 0}}], 2),
        ([LITTLE, {"name": "numcodecs.adler32", "configuration": {}}], 0),
        ([sharding((1,))], 4),
        ([sharding((1,), codecs=[LITTLE, CRC32C])], 0),
        ([sharding((1,)), CRC32C], 0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore:Numcodecs codecs")
def test_chunks_without_a_checksum_are_counted(tmp_path, check, run, codecs, unverified):
    (tmp_path / "zarr.json").write_bytes(array_document((6,), (2,), codecs=codecs))
    zarr.open_array(tmp_path, mode="r+")[:4] = [1, 2, 3, 4]
    status, document = check(tmp_path)
    assert (status, document["unverified"]) == (0, unverified)
    assert document["chunks"] in (2, 4)
    said = f"{unverified} chunks have no checksum, so damage that still decodes does not show"
    assert (said in run("check", tmp_path).stdout) == bool(unverified)


def test_checksums(tmp_path, check):
    (tmp_path / "c").mkdir()
    (tmp_path / "zarr.json").write_bytes(array_document((4,), (2,), codecs=[LITTLE, CRC32C]))
    (tmp_path / "c" / "1").write_bytes(bytes(8))
    status, document = check(tmp_path)
    assert (status, kinds(document)) == (1, [("chunk", "c/1")])
    assert "CRC-32C" in document["problems"][0]["reason"]


def test_a_torn_shard_is_repaired_and_its_original_kept(tree, check):
    path = tree / "inner" / "sharded"
    shard = path / "c" / "1" / "0"
    bad = bytearray(shard.read_bytes())
    bad[2] ^= 0xFF  # in the first inner chunk
    bad[-1] ^= 0xFF  # in the checksum of the index
    shard.write_bytes(bad)
    status, document = check(tree)
    assert status == 1
    (problem,) = document["problems"]
    assert (problem["kind"], problem["key"]) == ("shard", "inner/sharded/c/1/0")
    assert (problem["unreadable"], problem["readable"]) == (12, 0)
    assert "repaired" not in problem

    status, document = check(tree, "--repair")
    assert status == 1
    assert "kept 11 inner chunks" in document["problems"][0]["repaired"]
    assert document["problems"][0]["unrepaired"] == (
        "at most 1 of its chunks lost, which read as the fill value"
    )
    assert document["repaired"] == 0
    aside = path / ".zarrfs-damaged" / "c" / "1" / "0"
    assert aside.read_bytes() == bad
    found = stored(path)
    lost = found != NUMBERS
    assert set(zip(*np.nonzero(lost), strict=True)) <= {
        (i, j) for i in range(20, 25) for j in range(10)
    }
    assert lost.any()
    assert (found[lost] == 0).all()

    # What is lost stays said, whoever checks.
    for options in ((), ("--repair",)):
        status, document = check(tree, *options)
        assert (status, kinds(document)) == (1, [("lost", "inner/sharded/c/1/0")])
        assert document["problems"][0]["chunks"] == [[4, 0]]
        assert [note["kind"] for note in document["notes"]] == ["aside"]
    # A second original does not replace the first.
    shard.write_bytes(shard.read_bytes()[:-1])
    assert check(tree, "--repair")[0] == 1
    assert aside.read_bytes() == bad
    assert aside.with_name("0.1").exists()
    assert np.array_equal(stored(path), found)
    # Until it is written anew.
    zarr.open_array(path)[20:25, :10] = NUMBERS[20:25, :10]
    assert np.array_equal(stored(path), NUMBERS)
    assert check(tree)[0] == 0


def test_what_is_lost_can_be_forgotten(tree, check):
    path = tree / "inner" / "sharded"
    shard = path / "c" / "1" / "0"
    bad = bytearray(shard.read_bytes())
    bad[2] ^= 0xFF
    shard.write_bytes(bad)
    assert check(tree, "--repair")[0] == 1
    record = path / ".zarrfs-damaged" / "1.0.lost.json"
    record.write_bytes(b"{")
    status, document = check(tree)
    assert (status, kinds(document)) == (1, [("access", str(record.relative_to(tree)))])
    record.unlink()
    assert check(tree)[0] == 0


def test_a_bad_inner_chunk_alone(tree, check):
    path = tree / "inner" / "sharded"
    shard = path / "c" / "0" / "1"
    bad = bytearray(shard.read_bytes())
    bad[0] ^= 0xFF
    shard.write_bytes(bad)
    _, document = check(tree)
    (problem,) = document["problems"]
    assert (problem["unreadable"], problem["readable"]) == (1, 11)
    assert problem["chunks"] == [[0, 3]]
    status, document = check(tree, "--repair")
    (problem,) = document["problems"]
    assert (status, problem["unrepaired"]) == (
        *(1, "1 of its chunks lost, which read as the fill value"),
    )
    assert kinds(check(tree)[1]) == [("lost", "inner/sharded/c/0/1")]
    assert (stored(path) != NUMBERS).sum() <= 50


def test_a_shard_of_which_nothing_is_left_stays_as_it_is(tree, check):
    shard = tree / "inner" / "sharded" / "c" / "0" / "0"
    shard.write_bytes(b"\0" * 100)
    status, document = check(tree, "--repair")
    (problem,) = document["problems"]
    assert (status, problem["unrepaired"]) == (1, "nothing in it can be read for certain")
    assert shard.read_bytes() == b"\0" * 100
    assert not (tree / "inner" / "sharded" / ".zarrfs-damaged").exists()


def test_orphans(tree, check):
    (tree / "plain" / "c" / "4").mkdir()
    shutil.copy(tree / "plain" / "c" / "0" / "0", tree / "plain" / "c" / "4" / "0")
    (tree / "plain" / "c" / "0" / "0.partial").write_bytes(b"x")
    (tree / "plain" / "c" / "1" / "1" / "deep").parent.rename(tree / "moved")
    (tree / "plain" / "c" / "1" / "1").mkdir()
    (tree / "plain" / "c" / "1" / "1" / "deep").mkdir()
    (tree / "stray").write_bytes(b"")
    (tree / "moved").unlink()
    (tree / "empty").mkdir()
    status, document = check(tree)
    assert status == 1
    assert sorted(kinds(document)) == [
        ("orphan", "empty/"),
        ("orphan", "plain/c/0/0.partial"),
        ("orphan", "plain/c/1/1/"),
        ("orphan", "plain/c/4/0"),
        ("orphan", "stray"),
    ]
    by_key = {problem["key"]: problem["reason"] for problem in document["problems"]}
    assert "outside the grid of [4, 3]" in by_key["plain/c/4/0"]


def test_an_array_in_two_versions_has_no_orphans_for_that(tmp_path, check):
    zarr.create_array(tmp_path / "a", data=NUMBERS, chunks=(20, 20))
    zarr.create_array(tmp_path / "b", data=NUMBERS, chunks=(20, 20), zarr_format=2)
    shutil.copy(tmp_path / "b" / ".zarray", tmp_path / "a")
    assert check(tmp_path / "a")[0] == 0


def test_metadata_problems_are_all_named(tree, check):
    document = json.loads((tree / "plain" / "zarr.json").read_text())
    del document["data_type"]
    document["shape"] = [-1]
    (tree / "plain" / "zarr.json").write_text(json.dumps(document))
    (tree / "old" / ".zarray").write_text("{")
    corrected = json.loads(array_document((2,), (2,), codecs=["bytes"], data_type="int8"))
    corrected["dimension_names"] = None
    (tree / "lenient").mkdir()
    (tree / "lenient" / "zarr.json").write_text(json.dumps(corrected))
    status, found = check(tree)
    assert status == 1
    reasons = {(p["key"], p["reason"].partition(":")[0]) for p in found["problems"]}
    assert {("plain/zarr.json", "data_type"), ("plain/zarr.json", "shape")} <= reasons
    assert "old/.zarray" in {p["key"] for p in found["problems"]}
    assert {note["key"] for note in found["notes"]} == {"lenient/zarr.json"}


def test_damaged_attributes_and_groups(tree, check):
    (tree / "old/.zattrs").write_bytes(b"[1]")
    (tree / "inner/zarr.json").write_bytes(b"")
    status, document = check(tree)
    assert status == 1
    assert sorted((p["key"], p["reason"]) for p in document["problems"]) == [
        ("inner/zarr.json", "is not JSON: it is empty"),
        ("old/.zattrs", "is not a JSON object"),
    ]
    assert document["arrays"] == 3


@pytest.fixture
def consolidated(tree):
    shutil.rmtree(tree / "old")  # of another version
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # v3 has none by its specification
        zarr.consolidate_metadata(tree)
    return tree


def reasons(document):
    return sorted(problem["reason"] for problem in document["problems"])


def test_consolidated_metadata_that_are_out_of_date(consolidated, check):
    assert check(consolidated)[0] == 0
    (consolidated / "plain").rename(consolidated / "renamed")
    (consolidated / "inner/sharded").rename(consolidated / "inner/moved")
    status, document = check(consolidated)
    assert status == 1
    assert reasons(document) == [
        "consolidated metadata do not list inner/moved",
        "consolidated metadata do not list renamed",
        "consolidated metadata list inner/sharded, which does not exist",
        "consolidated metadata list plain, which does not exist",
    ]


def test_consolidated_metadata_that_differ_from_the_own_document(consolidated, check):
    zarr.open_array(consolidated / "plain", mode="r+").resize((50, 60))
    own = consolidated / "inner/sharded/zarr.json"
    document = json.loads(own.read_text())
    document["codecs"][0]["configuration"]["index_location"] = "start"
    document["attributes"] = {"units": "m"}
    own.write_text(json.dumps(document))
    _, found = check(consolidated)
    told = [p["reason"] for p in found["problems"] if p["key"] == "zarr.json"]
    assert sorted(reason.partition(" [")[0] for reason in told) == [
        'consolidated metadata give inner/sharded the attribute units null, its own document "m"',
        "consolidated metadata give inner/sharded the codecs",
        "consolidated metadata give plain the shape",
    ]
    assert any(reason.endswith("[40, 60], its own document [50, 60]") for reason in told)


def test_leftovers_of_a_killed_writer(tree, check):
    script = (
        "import os, sys; from zarrfs.store.local.local import LocalStore;"
        "store = LocalStore(sys.argv[1]);"
        "os.fsync = lambda _: os._exit(9); store.put('x', [b'half'], expected=None)"
    )
    killed = subprocess.run([sys.executable, "-c", script, tree], check=False, timeout=60)
    assert killed.returncode == 9
    status, document = check(tree)
    assert status == 1
    ((kind, key),) = kinds(document)
    assert kind == "leftover"
    assert (tree / key).exists()
    assert check(tree, "--repair")[0] == 4
    assert not (tree / key).exists()
    assert check(tree)[0] == 0


def test_links_without_a_target_are_told(tree, check):
    """As git-annex has them before contents are fetched: who reads them gets an error, too."""
    (tree / "plain/c/0/1").unlink()
    (tree / "plain/c/0/1").symlink_to("../../../.git/annex/objects/a")
    shutil.rmtree(tree / "plain/c/3")
    (tree / "plain/c/3").symlink_to("../../.git/annex/objects/b")
    status, document = check(tree)
    assert status == 1
    assert sorted(kinds(document)) == [("chunk", "plain/c/0/1"), ("orphan", "plain/c/3")]
    assert any("link on its path has no target" in one["reason"] for one in document["problems"])


def test_links_in_circles_come_to_an_end(tree, check):
    os.symlink("..", tree / "inner" / "up")
    os.symlink("..", tree / "inner" / "again")
    os.symlink(".", tree / "plain" / "c" / "0" / "self")
    status, document = check(tree)
    # Such a link is not listed.
    assert (status, kinds(document)) == (0, [])


def test_more_problems_than_are_kept(tmp_path, check):
    (tmp_path / "zarr.json").write_bytes(group_document())
    for i in range(10_050):
        (tmp_path / f"f{i}").touch()
    status, document = check(tmp_path)
    assert (status, len(document["problems"]), document["not_shown"]) == (1, 10_000, 50)


def test_what_cannot_be_checked(tmp_path, failed, tree):
    assert "no Zarr" in failed(1, "check", tmp_path / "h", "--path", "inner/none")
    assert "no such file" in failed(1, "check", tmp_path / "none")
    failed(2, "check", tree, "--memory", "1M")
    archive = shutil.make_archive(str(tmp_path / "z"), "zip", tree)
    assert "z.zip" in failed(1, "check", "--repair", archive)


def test_an_array_in_a_zip_file(tmp_path, tree, check):
    archive = shutil.make_archive(str(tmp_path / "z"), "zip", tree)
    status, document = check(archive)
    assert (status, document["chunks"]) == (0, 66)


@pytest.fixture
def served(tree):
    """The tree behind a web server that lists nothing."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tree))

        def list_directory(self, path):
            self.send_error(403)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_store_that_cannot_list(served, tree, check):
    (tree / "plain" / "c" / "0" / "1").write_bytes(b"")
    status, document = check(f"{served}/plain")
    assert (status, document["chunks"]) == (1, 12)
    assert kinds(document) == [("chunk", "c/0/1")]
    status, document = check(served)
    assert (status, document["arrays"]) == (1, 0)
    assert "cannot list" in document["problems"][0]["reason"]


def test_consolidated_metadata_of_a_group_above_list_its_groups_too(consolidated, served, check):
    expected = check(consolidated)
    assert expected[1]["groups"] > 1
    assert check(served) == (0, expected[1] | {"source": served})


def test_names_cannot_play_with_the_terminal(tree, run):
    (tree / "bad\x1b[2Jname").write_bytes(b"")
    result = run("check", tree)
    assert result.status == 1
    assert "\x1b" not in result.stdout
    assert "bad\\x1b[2Jname" in result.stdout


def test_a_shard_of_many_chunks_is_checked_in_little_memory(tmp_path, check):
    """More decoded bytes than the budget."""
    document = array_document(
        (16 << 20,), (16 << 20,), codecs=[sharding((1 << 19,), codecs=[LITTLE, CRC32C])]
    )
    path = tmp_path / "a"
    path.mkdir()
    (path / "zarr.json").write_bytes(document)
    array = zarr.open_array(path, mode="r+")
    array[...] = np.ones(16 << 20, "i2")
    status, found = check(path, "--memory", "16M")
    assert (status, found["chunks"]) == (0, 32)
