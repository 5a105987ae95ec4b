"""Small reads: the kernel gets whole chunks where these lie together in a file."""

import json
import os
import time

import numpy as np
import pytest
import zarr

pytestmark = pytest.mark.mount

ROWS, COLUMNS = 8, 524288


@pytest.fixture
def rows(tmp_path):
    """Each row a chunk."""
    values = np.random.default_rng(0).integers(0, 1000, (ROWS, COLUMNS)).astype("<u2")
    zarr.create_array(tmp_path / "rows.zarr", data=values, chunks=(1, COLUMNS))
    return tmp_path / "rows.zarr", values


def reads(mount_point) -> int:
    return json.loads((mount_point / ".zarrfs/stats.json").read_text())["reads"]["count"]


@pytest.mark.parametrize("name", ["array.bin", "array.npy"])
def test_a_chunk_is_asked_for_once(mounted, rows, name):
    source, values = rows
    path = mounted(source)
    header = (path / name).stat().st_size - values.nbytes
    content = bytes(header) + values.tobytes()
    descriptor = os.open(path / name, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        random = np.random.default_rng(1)
        # Soon no read of this chunk is a request any more, whichever pages it is of.
        # Looking at the count is reading, too.
        looking = -reads(path) + reads(path)
        without_request, give_up = 0, time.monotonic() + 20
        while without_request < 50 and time.monotonic() < give_up:
            before = reads(path)
            offset = header + 2 * COLUMNS + int(random.integers(0, 2 * COLUMNS - 4096))
            assert os.pread(descriptor, 4096, offset) == content[offset : offset + 4096]
            without_request = without_request + 1 if reads(path) - before == looking else 0
        assert without_request == 50
        for _ in range(500):
            offset = int(random.integers(header, len(content) - 100))
            assert os.pread(descriptor, 100, offset) == content[offset : offset + 100]
    finally:
        os.close(descriptor)


def test_pages_that_were_given_do_not_outlive_a_change(mounted, rows):
    source, _ = rows
    path = mounted(source, "recheck=always")
    array = zarr.open_array(source)
    for number in range(6):
        array[3] = number
        give_up = time.monotonic() + 20
        while True:
            with open(path / "array.bin", "rb", buffering=0) as file:
                offset = 2 * (3 * COLUMNS + 1000 * number + 512)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                found = {os.pread(file.fileno(), 2, offset + 8192 * i) for i in range(8)}
            if found == {number.to_bytes(2, "little")}:
                break
            # An open asks the store, and drops what it has found to be old soon after.
            assert time.monotonic() < give_up, found
