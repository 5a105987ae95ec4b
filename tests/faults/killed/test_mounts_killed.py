"""One of two real mounts dies at any of its operations: what was acknowledged is there.

Through several descriptors, copies and children that have them, mappings, and two views.
A sample in every run of the tests; each operation with `make sweep`.
"""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import run_zarrfs
from tests.faults.killed.write_every_way import ROW, ROWS
from tests.mount.arrays import stored
from tests.soak import EXHAUSTIVE

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
SAMPLE = 2
KINDS = {
    "plain": {"chunks": (5, 600)},
    "sharded": {"chunks": (4, 512), "shards": (32, 1024)},
}
# What is stored is then stored by threads of the daemon, whose operations are counted.
OPTIONS = "rw,workers=0,flush_delay=3600"

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.timeout(300)]


class Round:
    """The workload once, in an array of its own."""

    def __init__(self, mount_daemon, place: Path, kind: str, at: int) -> None:
        place.mkdir()
        self.source = place / "a.zarr"
        self.count = place / "count"
        zarr.create_array(self.source, shape=(ROWS, ROW // 4), dtype="<i4", **KINDS[kind])[...] = 0
        command = (sys.executable, HERE / "killed_zarrfs.py", str(at), self.count)
        options = (OPTIONS, f"journal={place / 'journal'}")
        self.mount = lambda **keywords: mount_daemon(self.source, *options, quiet=False, **keywords)
        self.mounts = mount_daemon
        self.before = len(mount_daemon.daemons)
        self.other = self.mount()
        try:
            self.victim = self.mount(command=command)
        except AssertionError as error:
            if "SIGKILL while it started" not in str(error):
                raise
            self.victim = None

    def run(self) -> bool:
        """Whether the mount was killed."""
        killed = self._run()
        for daemon in self.mounts.daemons[self.before :]:
            self.mounts.end(daemon)
        return killed

    def _run(self) -> bool:
        if self.victim is None:
            self.other.umount()
            self.mount().umount()
            assert not stored(self.source).any()
            return True
        written = subprocess.run(
            [sys.executable, "-m", "tests.faults.killed.write_every_way"]
            + [str(mount.path) for mount in (self.victim, self.other)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            timeout=100,
            check=False,
        )
        assert written.returncode in (0, -signal.SIGBUS), written
        ended = "done" in written.stdout and run_zarrfs("umount", self.victim.path).returncode == 0
        killed = self.victim.wait() == -signal.SIGKILL
        assert killed or ended
        self.other.umount()
        assert self.other.wait() == 0
        last = self.mount()
        last.umount()
        assert last.wait() == 0
        found = stored(self.source)
        values = {}
        for line in written.stdout.splitlines():
            what, *numbers = line.split()
            if what == "w":
                row, value = map(int, numbers)
                values[row] = value
                assert set(np.unique(found[row])) <= {0, value}
            for row in map(int, numbers if what == "s" else ()):
                assert (found[row] == values[row]).all(), f"row {row} of {line!r} is lost"
        assert not (found[len(values) :] != 0).any()
        return killed


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_is_there(mount_daemon, tmp_path, kind):
    whole = Round(mount_daemon, tmp_path / "whole", kind, 0)
    assert not whole.run()
    count = whole.count.stat().st_size
    step = 1 if EXHAUSTIVE else count // SAMPLE
    hits = sum(
        Round(mount_daemon, tmp_path / str(at), kind, at).run()
        for at in range(1 + step // 2, count + 1, step)
    )
    assert hits
    print(f"{kind}: killed at {hits} of {count} operations")
