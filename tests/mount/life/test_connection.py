"""Breaking one mount breaks no other one, which may have got its place and its numbers."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.mount.arrays import make_array
from zarrfs.daemon.hung_mount import free_connection, serialized
from zarrfs.daemon.life.end_report import EndReader
from zarrfs.fuse import connection
from zarrfs.fuse.connection import Connection

pytestmark = pytest.mark.timeout(200)

CONNECTIONS = connection._CONNECTIONS
TRIES = 20


def find(path: Path) -> Connection:
    found = Connection.find(str(path))
    assert found is not None
    return found


def needs_fusectl(path: Path) -> None:
    if not os.access(CONNECTIONS / str(find(path).device[1]) / "abort", os.W_OK):
        pytest.skip("needs fusectl: mount -t fusectl none /sys/fs/fuse/connections")


@pytest.mark.parametrize("files", ["held", "none"])
@pytest.mark.parametrize("by", ["daemon", "nursery"])
def test_numbers_that_are_reused(mount_daemon, source, monkeypatch, tmp_path, by, files):
    """The kernel gives them to the next mount at once."""
    if files == "none":
        monkeypatch.setattr(connection, "_CONNECTIONS", tmp_path)
    for number in range(TRIES):
        first = mount_daemon(source)
        if files == "held":
            needs_fusectl(first.path)
        held = find(first.path).held()
        assert bool(held.files) == (files == "held")
        assert held.mounted
        first.umount()
        # Without the files, only the path tells them apart.
        at = first.path if files == "held" else tmp_path / f"other{number}"
        second = mount_daemon(source, at=at)
        other = find(second.path)
        reused = (other.device, other.mount) == (held.device, held.mount)
        assert not held.mounted
        if by == "daemon":
            held.abort()
        else:
            free_connection(serialized(held), held.files)
        held.close()
        assert second.mounted
        assert (second.path / "array.bin").stat().st_size == 600_000
        assert len((second.path / "array.bin").read_bytes()) == 600_000
        mount_daemon.end(second)
        if reused:
            break
    else:
        pytest.fail("no number was reused")  # other tests may have taken each of them


@pytest.mark.parametrize("flags", [os.O_RDWR, os.O_WRONLY])
def test_changes_of_an_aborted_mount_are_stored(mount_daemon, tmp_path, flags):
    """Pages that a program changed in a mapping come no more: the files are named."""
    array = make_array(tmp_path / "group.zarr", "a", "plain")
    daemon = mount_daemon(tmp_path / "group.zarr", "rw,flush_delay=3600", quiet=False)
    path = daemon.path / "a/array.bin"
    report = json.loads((daemon.path / ".zarrfs/config.json").read_text())["end_report"]
    end = EndReader(report)
    file = os.open(path, flags)
    try:
        data = np.full(array.data.size, 3, "<u2").tobytes()
        assert os.pwrite(file, data, 0) == len(data)
        held = find(daemon.path).held()
        assert held.abort()
        held.close()
    finally:
        with pytest.raises(OSError):
            os.close(file)
    lost = "a/array.bin: pages that a program changed in a mapping may be lost"
    if flags == os.O_RDWR:
        assert daemon.wait() == 1
        assert [reason.partition(":")[0] for reason in end.read().reasons] == ["a/array.bin"]
        assert lost in daemon.log
    else:
        assert daemon.wait() == 0
        assert end.read().stored
        assert lost not in daemon.log
    end.close()
    assert (array.stored() == 3).all()
