"""Files of a store that are swapped for other things below a mount that is used."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Mounter
from tests.fs.documents import array_document, sharding
from tests.fs.shards import shard
from tests.store.swapper import swapping

pytestmark = pytest.mark.timeout(120)

SIDE = 64
SECRET = b"very-secret" * 1000
ROUNDS = 6
FILES = ("zarr.json", "a/zarr.json", "a/c/0", "s/zarr.json", "s/c/0")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("a", "s"):
        (root / name / "c").mkdir(parents=True)
    (root / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (root / "a/zarr.json").write_bytes(array_document((SIDE,), (SIDE,)))
    (root / "a/c/0").write_bytes(b"\1\2" * SIDE)
    codecs = [sharding((SIDE // 2,))]
    (root / "s/zarr.json").write_bytes(array_document((SIDE,), (SIDE,), codecs=codecs))
    (root / "s/c/0").write_bytes(shard([bytes(SIDE), b"\1\2" * (SIDE // 2)]))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(SECRET)
    return root


def used(mnt: Path, number: int, outcomes: set[str]) -> None:
    """Reads, lists and writes once; what came of it is added to ``outcomes``."""
    for name in ("a", "s"):
        for path in (mnt / name / "array.bin", mnt / name / "chunks/0", mnt / name / "zarr.json"):
            try:
                data = path.read_bytes()
                assert b"very" not in data
                outcomes.add("read")
            except OSError as error:
                outcomes.add(errno.errorcode[error.errno or 0])
        try:
            with open(mnt / name / "array.bin", "r+b", buffering=0) as file:
                os.pwrite(file.fileno(), b"\1\2", 2 * (number % SIDE))
                os.fsync(file.fileno())
            outcomes.add("written")
        except OSError as error:
            outcomes.add(errno.errorcode[error.errno or 0])
    for directory in (mnt, mnt / "a", mnt / "s/chunks"):
        with suppress(OSError):
            os.listdir(directory)


def test_what_is_swapped_below_a_mount_that_is_used(root, mount_daemon: Mounter):
    daemon = mount_daemon(root, "rw,recheck=0,recheck_metadata=0,flush_delay=0.01", quiet=False)
    for name in FILES:
        outcomes: set[str] = set()
        done = 0
        with swapping(root / name) as swapper:
            while done < ROUNDS or swapper.rounds < 5 * ROUNDS:
                used(daemon.path, done, outcomes)
                done += 1
        # All is as it was again.
        used(daemon.path, done, outcomes)
        assert "read" in outcomes
        assert "ENOTCONN" not in outcomes  # the daemon ended
    assert (daemon.path / ".zarrfs/stats.json").read_bytes()
    daemon.umount()
    assert daemon.wait() in (0, 1)
    assert "Traceback" not in daemon.log
    assert (root.parent / "outside/secret").read_bytes() == SECRET
    assert os.listdir(root.parent / "outside") == ["secret"]
