"""Mounted snapshots of Icechunk repositories, which zarr-python wrote through icechunk."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.conftest import run_zarrfs

icechunk = pytest.importorskip("icechunk", reason="these tests need icechunk")

pytestmark = pytest.mark.mount

RNG = np.random.default_rng(3)
ARRAYS: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "plain": (RNG.integers(0, 1000, (50, 40), dtype=np.uint16), {"chunks": (20, 20)}),
    "group/sharded": (
        RNG.standard_normal((64, 64), dtype=np.float32),
        {"chunks": (8, 8), "shards": (32, 32)},
    ),
    "group/inline": (np.arange(10, dtype=np.int8), {"chunks": (3,)}),
    "group/point": (np.array(7.5), {"chunks": ()}),
}
# What another process commits while the repository is mounted.
COMMIT = """
import sys, icechunk, zarr
icechunk.set_logs_filter("off")
repository = icechunk.Repository.open(icechunk.local_filesystem_storage(sys.argv[1]))
session = repository.writable_session("main")
zarr.open_group(session.store)["plain"][:] = 9
session.commit("by another process")
"""


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, str, str]:
    """A repository and its two snapshots; the first is tagged v1 and the tip of the branch old."""
    icechunk.set_logs_filter("off")
    place = tmp_path / "repository"
    opened = icechunk.Repository.create(icechunk.local_filesystem_storage(str(place)))
    session = opened.writable_session("main")
    root = zarr.group(session.store, attributes={"title": "first"})
    for path, (data, how) in ARRAYS.items():
        root.create_array(path, data=data, **how)
    first = session.commit("first")
    opened.create_tag("v1", first)
    opened.create_branch("old", first)
    session = opened.writable_session("main")
    zarr.open_group(session.store)["plain"][:10] = 3
    return place, first, session.commit("second")


def second() -> np.ndarray:
    data = ARRAYS["plain"][0].copy()
    data[:10] = 3
    return data


def check(mount: Path, plain: np.ndarray) -> None:
    for path, (data, _) in ARRAYS.items():
        expected = plain if path == "plain" else data
        assert (mount / path / "array.bin").read_bytes() == expected.tobytes(), path
        np.testing.assert_array_equal(np.load(mount / path / "array.npy"), expected)
    assert {p.name for p in mount.iterdir() if p.is_dir()} == {".zarrfs", "group", "plain"}
    assert sorted(p.name for p in (mount / "plain" / "chunks").iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("options", "is_first"),
    [
        (("branch=old",), True),
        (("tag=v1",), True),
        (("snapshot={first}",), True),
    ],
)
def test_every_version(repository, mounted, options, is_first):
    place, first, second_id = repository
    told = [option.format(first=first, second=second_id) for option in options]
    mount = mounted(f"icechunk://{place}", *told)
    check(mount, ARRAYS["plain"][0] if is_first else second())


def test_a_commit_does_not_change_what_is_mounted(repository, mount_daemon):
    place, _, second_id = repository
    # All that may ask again does, for any other store.
    daemon = mount_daemon(f"icechunk://{place}", "recheck=always", "recheck_metadata=always")
    beginning = (daemon.path / "plain/array.bin").read_bytes()[:100]
    assert beginning == second().tobytes()[:100]
    subprocess.run([sys.executable, "-c", COMMIT, str(place)], check=True, timeout=60)
    check(daemon.path, second())
    status = json.loads((daemon.path / ".zarrfs/config.json").read_text())
    assert second_id in json.dumps(status)
    # A new mount shows the new tip of the branch, and the old snapshot stays.
    again = mount_daemon(f"icechunk://{place}")
    check(again.path, np.full_like(second(), 9))
    before = mount_daemon(f"icechunk://@{second_id}::{place}")
    check(before.path, second())


def test_a_disk_cache_never_mixes_snapshots(repository, mount_daemon, tmp_path):
    place, _, _ = repository
    cache = f"disk_cache={tmp_path / 'cache'}"
    first = mount_daemon(f"icechunk://{place}", cache)
    check(first.path, second())
    first.umount()
    subprocess.run([sys.executable, "-c", COMMIT, str(place)], check=True, timeout=60)
    check(mount_daemon(f"icechunk://{place}", cache).path, np.full_like(second(), 9))


def test_an_array_in_the_snapshot(repository, mounted):
    place, _, _ = repository
    mount = mounted(f"icechunk://@tag.v1/group/sharded::{place}")
    data = ARRAYS["group/sharded"][0]
    assert (mount / "array.bin").read_bytes() == data.tobytes()
    mount = mounted(f"{place}|icechunk:@branch.old/plain|zarr3:")
    assert (mount / "array.bin").read_bytes() == ARRAYS["plain"][0].tobytes()


def test_messages(repository, tmp_path):
    place, _, _ = repository
    source = f"icechunk://{place}"
    target = tmp_path / "none"
    for arguments, text in (
        ((source, "-o", "branch=man"), "no branch 'man'; its branches are: main, old"),
        ((source, "-o", "rw"), "a snapshot never changes"),
        ((source, "-o", "tag=v1,branch=old"), "branch, tag and snapshot exclude each other"),
        ((str(place), "-o", "tag=v1"), "is not an Icechunk repository"),
    ):
        target.mkdir(exist_ok=True)
        done = run_zarrfs("mount", arguments[0], target, *arguments[1:])
        assert done.returncode in (1, 2), done
        assert text in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_other_commands(repository, tmp_path):
    place, _, _ = repository
    source = f"icechunk://@tag.v1::{place}"
    assert run_zarrfs("info", source).returncode == 0
    target = tmp_path / "plain.bin"
    done = run_zarrfs("export", f"icechunk://@tag.v1/plain::{place}", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert target.read_bytes() == ARRAYS["plain"][0].tobytes()
