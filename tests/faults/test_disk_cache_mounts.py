"""Mounts that keep what they read on a disk: later ones, killed ones, and data that change."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.remote_server import RemoteServer

pytestmark = pytest.mark.mount
DATA = np.arange(64, dtype="u1")


@pytest.fixture
def server(server: RemoteServer, tmp_path: Path) -> RemoteServer:
    root = tmp_path / "a.zarr"
    zarr.create_array(root, shape=(64,), chunks=(8,), dtype="u1")[:] = DATA
    server.upload(root, "b")
    return server


@pytest.fixture
def read(mount_daemon, server, tmp_path) -> Callable[..., tuple[bytes, int]]:
    """Reads the array through a new mount: its bytes, and how many chunks were fetched."""

    def read_once(*options: str, kill: bool = False) -> tuple[bytes, int]:
        server.counts.reset()
        said = ",".join((f"disk_cache={tmp_path}/kept,disk_cache_size=20M", *options))
        daemon = mount_daemon("s3://b/a.zarr", said, quiet=not kill)
        found = (daemon.path / "array.bin").read_bytes()
        fetched = sum(method == "GET" and "/c/" in path for method, path, _ in server.counts.asked)
        if kill:
            daemon.signal(9)
            daemon.wait()
        else:
            daemon.umount()
        return found, fetched

    return read_once


@pytest.mark.parametrize("kill", [False, True], ids=["ended", "killed"])
def test_the_next_mount_fetches_nothing(read, kill):
    assert read(kill=kill) == (DATA.tobytes(), 8)
    assert read() == (DATA.tobytes(), 0)
