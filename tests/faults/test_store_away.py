"""A mount whose remote store goes away: it is told, it ends in time, and nothing is lost."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.remote_server import Fault, RemoteServer
from tests.waiting import wait_until
from zarrfs.cli.status import status_lines
from zarrfs.daemon.status import Status

DATA = np.arange(64, dtype="u1")


@pytest.fixture
def server(server: RemoteServer, tmp_path: Path) -> RemoteServer:
    root = tmp_path / "a.zarr"
    zarr.create_array(root, shape=(64,), chunks=(8,), dtype="u1")
    server.upload(root, "b")
    return server


@pytest.fixture(params=[Fault.HANG, Fault.BUSY, Fault.DROP], ids=["silent", "busy", "broken"])
def fault(request) -> Fault:
    return request.param


def test_a_mount_ends_by_its_deadline_and_keeps_what_it_could_not_store(
    server, fault, mount_daemon, tmp_path
):
    options = f"rw,flush_delay=3600,journal={tmp_path}/kept"
    daemon = mount_daemon("s3://b/a.zarr", options, "drain_timeout=1", quiet=False)
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    os.pwrite(file, DATA.tobytes(), 0)
    server.plan = lambda _method, _target: fault
    daemon.signal(15)
    assert daemon.wait() != 0
    with suppress(OSError):
        os.close(file)
    assert "the next mount with -o rw stores them" in daemon.log
    server.plan = lambda _method, _target: None
    again = mount_daemon("s3://b/a.zarr", options, quiet=False)
    assert (again.path / "array.bin").read_bytes() == DATA.tobytes()
    again.umount()
    assert {key for key in server.objects.buckets["b"] if "/c/" in key} == {
        f"a.zarr/c/{number}" for number in range(8)
    }


def test_a_chunk_that_becomes_fill_value_is_removed(server, mount_daemon):
    """A flush that stores no object."""
    with mount_and_open(mount_daemon) as file:
        os.pwrite(file, DATA.tobytes(), 0)
        os.fsync(file)
        assert "a.zarr/c/3" in server.objects.buckets["b"]
        os.pwrite(file, bytes(8), 24)
        os.fsync(file)
    assert "a.zarr/c/3" not in server.objects.buckets["b"]


@contextmanager
def mount_and_open(mount_daemon) -> Iterator[int]:
    daemon = mount_daemon("s3://b/a.zarr", "rw", quiet=False)
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    try:
        yield file
    finally:
        os.close(file)
    daemon.umount()


def test_trouble_is_told_while_it_lasts(server, mount_daemon):
    """A read and an fsync that begin then wait until the store is back."""
    daemon = mount_daemon("s3://b/a.zarr", "rw,flush_delay=0.1,timeout=100", quiet=False)
    server.plan = lambda method, _target: Fault.BUSY if method == "PUT" else None
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    os.pwrite(file, DATA[:8].tobytes(), 0)
    daemon.wait_for_log("the store is in trouble")
    # Not by the command: a new process would close the file, which waits for the store.
    stats = json.loads((daemon.path / ".zarrfs/stats.json").read_bytes())
    config = json.loads((daemon.path / ".zarrfs/config.json").read_bytes())
    assert "SlowDown" in stats["store"]["trouble"]["reason"]
    lines = list(status_lines(Status(str(daemon.path), stats, config), None))
    (line,) = [line for line in lines if line.startswith("  trouble")]
    assert "the store is asked again: c/" in line
    # More than the kernel asks for a chunk that it could not read.
    failures = [Fault.DROP] * 4

    def away(method: str, target: str) -> Fault | None:
        if not failures or (method == "GET" and "c/5" not in target):
            return None
        return failures.pop() if method == "GET" else Fault.DROP

    server.plan = away
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(os.pread, file, 8, 40)
        os.fsync(file)
        assert reading.result() == bytes(8)
    os.close(file)
    assert not failures
    assert server.objects.get("b", "a.zarr/c/0").data
    daemon.wait_for_log("the store answers again")
    wait_until(
        lambda: (
            not json.loads((daemon.path / ".zarrfs/stats.json").read_bytes())["store"]["trouble"]
        )
    )
    daemon.umount()


def test_a_change_of_a_shard_that_is_too_large_to_rewrite_is_kept(server, mount_daemon, tmp_path):
    """Until a mount has the memory: the error names the option, and the journal has the change."""
    root = tmp_path / "large.zarr"
    data = np.random.default_rng(1).integers(0, 256, 6 << 20, np.uint8)
    zarr.create_array(
        root, data=data, chunks=(64 << 10,), shards=data.shape, compressors=None, filters=None
    )
    server.upload(root, "b")
    options = f"rw,journal={tmp_path}/kept"
    daemon = mount_daemon(
        "s3://b/large.zarr", f"{options},memory=16M", "drain_timeout=1", quiet=False
    )
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    os.pwrite(file, b"\1\2\3", 100_000)
    with pytest.raises(OSError, match=r"\[Errno"):
        os.fsync(file)
    with suppress(OSError):
        os.close(file)
    daemon.wait_for_log("raise it with -o memory=")
    daemon.signal(15)
    assert daemon.wait() != 0
    assert "the next mount with -o rw stores them" in daemon.log
    data[100_000:100_003] = 1, 2, 3
    again = mount_daemon("s3://b/large.zarr", f"{options},memory=256M", quiet=False)
    assert (again.path / "array.bin").read_bytes() == data.tobytes()
    again.umount()
    plain = mount_daemon("s3://b/large.zarr", "", quiet=False)
    assert (plain.path / "array.bin").read_bytes() == data.tobytes()
