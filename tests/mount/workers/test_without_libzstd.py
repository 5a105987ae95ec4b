"""A system without libzstd: Python packages decode and encode, and nothing else is different."""

from pathlib import Path

import numpy as np
import pytest
import zarr

from zarrfs.format.codecs.native import libzstd

SHAPE = (64, 64, 64)


def maps(pid: int) -> str:
    """What a daemon and its workers have mapped."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return "".join(Path(f"/proc/{each}/maps").read_text() for each in (pid, *children))


@pytest.mark.parametrize(("workers", "there"), [(0, True), (2, False)], ids=["there", "missing"])
def test_reading_and_writing(mount_daemon, tmp_path, monkeypatch, workers, there):
    if not there:
        (tmp_path / "libzstd.so.1").write_text("no library")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    data = np.random.default_rng(0).integers(0, 3000, SHAPE, dtype="u2")
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=SHAPE, dtype="u2", chunks=(16, 16, 16))[...] = data
    daemon = mount_daemon(source, "rw", f"workers={workers}")
    path = daemon.path / "array.bin"
    assert path.read_bytes() == data.tobytes()
    new = (data + 1).tobytes()
    with open(path, "r+b", buffering=0) as file:
        file.write(new)
    assert path.read_bytes() == new
    assert ("libzstd.so.1" in maps(daemon.pid)) == (there and libzstd() is not None)
    daemon.umount()
    assert zarr.open_array(source, mode="r")[...].tobytes() == new
