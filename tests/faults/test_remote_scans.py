"""Scans and listings of remote stores through real mounts: how many requests they take."""

import dataclasses
import itertools
import os
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

SIDE = 16


@pytest.fixture
def shard(server, tmp_path: Path) -> np.ndarray:
    """One shard of 256 inner chunks in Morton order, in which zarr-python writes them."""
    data = np.zeros((SIDE * 64, SIDE * 512), "u1")
    data[:, ::2] = np.random.default_rng(1).integers(0, 256, (SIDE * 64, SIDE * 256), "u1")
    zarr.create_array(tmp_path / "a.zarr", data=data, chunks=(64, 512), shards=data.shape)
    server.upload(tmp_path / "a.zarr", "b")
    return data


@pytest.mark.parametrize("options", ["memory=128M", "memory=128M,immutable"])
@pytest.mark.parametrize("kind", ["s3", "http"])
def test_a_scan_of_a_shard_in_any_order_takes_few_requests(
    server, shard, mount_daemon, kind, options
):
    source = "s3://b/a.zarr" if kind == "s3" else f"{server.url}/b/a.zarr"
    daemon = mount_daemon(source, options, quiet=False)
    server.counts.reset()
    assert (daemon.path / "array.bin").read_bytes() == shard.tobytes()
    stored = len(server.objects.get("b", "a.zarr/c/0/0").data)
    assert server.counts.total <= 16
    assert server.counts.sent <= 1.1 * stored
    daemon.umount()


def test_a_mount_over_http_that_nobody_reads_has_six_threads_at_most(server, shard, mount_daemon):
    daemon = mount_daemon(f"{server.url}/b/a.zarr", quiet=False)
    assert len(os.listdir(f"/proc/{daemon.pid}/task")) <= 6
    daemon.umount()


def test_etags_that_differ_between_replies_fetch_no_byte_more_than_twice(
    server, shard, mount_daemon
):
    """As some mirrors send them; with immutable, the state of an object is known."""
    get, numbers = server.objects.get, itertools.count()
    server.objects.get = lambda bucket, key: dataclasses.replace(
        get(bucket, key), etag=f'"{next(numbers)}"'
    )
    daemon = mount_daemon("s3://b/a.zarr", "memory=128M,immutable", quiet=False)
    server.counts.reset()
    assert (daemon.path / "array.bin").read_bytes() == shard.tobytes()
    assert server.counts.sent <= 2 * len(get("b", "a.zarr/c/0/0").data)
    daemon.umount()


def test_a_server_that_ignores_ranges_sends_a_shard_once(server, shard, mount_daemon):
    server.ranges = False
    daemon = mount_daemon(f"{server.url}/b/a.zarr", "memory=128M", quiet=False)
    server.counts.reset()
    assert (daemon.path / "array.bin").read_bytes() == shard.tobytes()
    assert server.counts.sent <= 1.1 * len(server.objects.get("b", "a.zarr/c/0/0").data)
    daemon.umount()


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("options", ["", "immutable"])
def test_an_archive_is_fetched_once(server, tmp_path, mount_daemon, kind, options):
    random = np.random.default_rng(1)
    # A tar file has no table: the headers of all members are read.
    size = 300_000 if kind == "tar" else 100_000
    data = random.integers(0, 256, (40, size), "u1")
    root = tmp_path / "a.zarr"
    zarr.create_array(root, data=data, chunks=(1, size), compressors=None)
    archive = shutil.make_archive(str(tmp_path / "a"), kind, root)
    stored = Path(archive).read_bytes()
    server.make_bucket("b", {f"a.{kind}": stored})
    daemon = mount_daemon(f"{kind}://::s3://b/a.{kind}", options, quiet=False)
    rows = random.permutation(40)[:10]
    for row in rows:
        assert (daemon.path / f"chunks/{row}/0").read_bytes() == data[row].tobytes()
    assert server.counts.sent <= 1.1 * data[rows].nbytes
    daemon.umount()


def test_a_group_that_cannot_be_listed_shows_no_file_of_its_arrays(server, tmp_path, mount_daemon):
    root = tmp_path / "g.zarr"
    zarr.create_group(root).create_array("a", data=np.arange(4, dtype="u1"))
    server.upload(root, "b")
    daemon = mount_daemon(f"{server.url}/b/g.zarr", "", quiet=False)
    assert sorted(entry.name for entry in os.scandir(daemon.path)) == [".zarrfs", "zarr.json"]
    subprocess.run(["ls", "-l", daemon.path], check=True, capture_output=True, timeout=60)
    assert not (daemon.path / "group.h5").exists()
    assert (daemon.path / "a/array.bin").read_bytes() == bytes([0, 1, 2, 3])
    daemon.umount()


@pytest.mark.parametrize("options", ["recheck=600", "immutable"])
def test_a_walk_through_a_consolidated_group_takes_few_requests(
    server, tmp_path, mount_daemon, options
):
    root = tmp_path / "g.zarr"
    group = zarr.create_group(root)
    for number in range(40):
        group.create_array(f"a{number}", shape=(4,), chunks=(4,), dtype="u1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(root)
    server.upload(root, "b")
    daemon = mount_daemon("s3://b/g.zarr", options, quiet=False)

    def run(*command: str) -> str:
        server.counts.reset()
        where = [*command, str(daemon.path)]
        return subprocess.run(where, check=True, capture_output=True, timeout=100).stdout.decode()

    document = server.objects.get("b", "g.zarr/a0/zarr.json").data
    spaced = document.replace(b"  ", b"     ")
    server.put("b", "g.zarr/a1/zarr.json", spaced)
    for command in (["find"], ["ls", "-lR", "--ignore=.zarrfs"], ["du", "--exclude=.zarrfs"]):
        for most in 0 if options == "immutable" else 3, 0:
            found = run(*command)
            assert server.counts.total <= most, command
            assert command[0] == "du" or found.count("zarr.json") == 41
            assert command[0] != "ls" or found.count(f" {len(document)} ") >= 39
    # An open reads the document, however its writer has spaced it.
    assert (daemon.path / "a1/zarr.json").read_bytes() == spaced
    assert (daemon.path / "a1/zarr.json").stat().st_size == len(spaced)
    daemon.umount()
