"""Google's store behind real mounts: found by the ecosystem's conventions, written by two hosts."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.remote_server import RemoteServer

pytestmark = pytest.mark.mount


def test_two_mounts_write_to_one_chunk(tmp_path: Path, mount_daemon, monkeypatch):
    pytest.importorskip("gcsfs", reason="the tests of Google Cloud Storage need gcsfs")
    root = tmp_path / "a.zarr"
    zarr.create_array(root, shape=(64,), chunks=(64,), dtype="u1")
    with RemoteServer() as server:
        server.upload(root, "b")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        daemons = [mount_daemon("gs://b/a.zarr", "rw", quiet=False) for _ in range(2)]
        opened = [os.open(daemon.path / "array.bin", os.O_RDWR) for daemon in daemons]

        def write(which: int) -> None:
            for number in range(which, 16, 2):
                os.pwrite(opened[which], bytes([number + 1]), number)
                os.fsync(opened[which])

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, range(2)))
        for file in opened:
            os.close(file)
        for daemon in daemons:
            daemon.umount()
        for key, stored in server.objects.buckets["b"].items():
            path = tmp_path / "after" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored.data)
    found = zarr.open_array(tmp_path / "after/a.zarr", mode="r")[:]
    assert np.array_equal(found[:16], np.arange(1, 17))
    assert not found[16:].any()
