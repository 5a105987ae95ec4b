"""A program changes a file in place through a mount: it reads a block, writes it, and goes on."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import zarr

pytestmark = pytest.mark.timeout(120)

BLOCK = 1 << 20


def test_a_file_changed_in_place_is_decoded_about_once(mount_daemon, tmp_path):
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(64, 512, 512), chunks=(16, 128, 128), dtype="<u2"
    )
    values = np.random.default_rng(0).integers(0, 1 << 15, array.shape, "<u2")
    array[:] = values
    daemon = mount_daemon(tmp_path / "a.zarr", "rw")
    file = os.open(daemon.path / "array.bin", os.O_RDWR)
    try:
        for offset in range(0, values.nbytes, BLOCK):
            block = np.frombuffer(os.pread(file, BLOCK, offset), "<u2")
            os.pwrite(file, (block + 1).tobytes(), offset)
        os.fsync(file)
    finally:
        os.close(file)
    stats = json.loads((daemon.path / ".zarrfs/stats.json").read_text())
    assert stats["cache"]["decoded_bytes"] <= 3 * values.nbytes
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr", mode="r")[:], values + 1)
