"""Parts of a shard that is larger than `-o memory=` allows are written through a mount."""

import os
import re
from pathlib import Path

import numpy as np
import zarr

LENGTH = 48 << 20


def peak(pid: int) -> int:
    """The most bytes that a process ever had in memory."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) << 10


def test_a_part_of_a_large_shard_is_stored_at_fsync(mount_daemon, tmp_path):
    source = tmp_path / "a.zarr"
    data = np.random.default_rng(0).integers(0, 256, LENGTH, np.uint8)
    zarr.create_array(source, data=data, shards=(LENGTH,), chunks=(1 << 20,), compressors=None)
    daemon = mount_daemon(source, "rw,memory=64M,flush_delay=3600")
    before = peak(daemon.pid)
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        for at in (5, LENGTH // 2, LENGTH - 9):
            data[at : at + 9] = np.arange(9)
            os.pwrite(file.fileno(), data[at : at + 9].tobytes(), at)
        os.fsync(file.fileno())
    assert peak(daemon.pid) - before < LENGTH // 2
    daemon.umount()
    daemon.wait()
    assert not (tmp_path / "journal").exists()
    assert (zarr.open_array(source, mode="r")[...] == data).all()
