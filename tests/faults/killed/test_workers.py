"""Worker processes that die, crash or outlive their daemon: through real mounts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.mount.workers.test_stopped_workers import IMPATIENT
from tests.mount.workers.test_workers import (
    alive,
    children_of,
    comm,
    wait_for_end,
    workers_of,
    write,
)
from tests.waiting import wait_until
from zarrfs.fuse.mount_table import topmost

CRASHING = Path(__file__).parent / "crashing_zarrfs.py"


def nursery_of(pid: int) -> int:
    (found,) = [child for child in children_of(pid) if comm(child) == "zarrfs-nursery"]
    return found


def read_past_the_kernel(path: Path) -> bytes:
    """A scan, of which nothing may come from the page cache."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return file.readall()


def test_new_workers_are_as_good_as_the_first(mount_daemon, tmp_path):
    """All workers are replaced, twice; scans and stores are theirs again."""
    data = write(tmp_path / "a.zarr", repeats=2)
    daemon = mount_daemon(tmp_path / "a.zarr", "rw,workers=2,memory=16M", quiet=False)
    known: set[int] = set()
    for turn in range(2):
        workers = alive(workers_of(daemon.pid))
        assert len(workers) == 2
        assert not known & set(workers)
        known.update(workers)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        wait_for_end(workers)
        data = data[::-1] + np.uint16(turn)
        with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
            plain = memoryview(data.tobytes())
            while plain:
                plain = plain[file.write(plain[: 1 << 18]) :]
            os.fsync(file.fileno())
        assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], data)
        assert read_past_the_kernel(daemon.path / "array.bin") == data.tobytes()
    new = alive(workers_of(daemon.pid))
    assert len(new) == 2
    # None of the dead are left.
    assert sorted(children_of(daemon.pid)) == sorted([*new, nursery_of(daemon.pid)])
    for pid in new:
        held = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        assert "/dev/fuse" not in held
        # One connection, with the daemon; not those of other workers or of the nursery.
        assert sum(name.startswith("socket:") for name in held) == 1
    daemon.umount()
    assert daemon.wait() == 0
    wait_for_end(new)


def test_a_decoder_that_crashes_does_not_fork_without_end(mount_daemon, tmp_path):
    """Each worker that is given a job dies of it, and threads do it all."""
    data = write(tmp_path / "a.zarr", repeats=3)
    command = (sys.executable, CRASHING)
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2,memory=16M", command=command, quiet=False)
    begun = time.monotonic()
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    lost = daemon.log.count("ended with status -11")
    # Two at first, four at once, and then one each ten seconds.
    assert 2 <= lost <= 7 + (time.monotonic() - begun) / 10
    daemon.umount()
    assert daemon.wait() == 0


def kill_nursery(daemon) -> int:
    """Returns the process that is there in its place."""
    nursery = nursery_of(daemon.pid)
    os.kill(nursery, signal.SIGKILL)
    daemon.wait_for_log("the nursery has ended and is replaced")
    wait_until(lambda: "zarrfs-nursery" in map(comm, children_of(daemon.pid)))
    assert nursery_of(daemon.pid) != nursery
    return nursery_of(daemon.pid)


def test_without_the_nursery_threads_go_on(mount_daemon, tmp_path):
    data = write(tmp_path / "a.zarr", repeats=2)
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=1,memory=16M", quiet=False)
    (worker,) = workers_of(daemon.pid)
    nursery = kill_nursery(daemon)
    assert "/dev/fuse" not in {os.readlink(each) for each in Path(f"/proc/{nursery}/fd").iterdir()}
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    assert alive([worker]) == [worker]
    os.kill(worker, signal.SIGKILL)
    assert read_past_the_kernel(daemon.path / "array.bin") == data.tobytes()
    daemon.wait_for_log("cannot be replaced")
    daemon.umount()
    assert daemon.wait() == 0
    wait_for_end([nursery])


@pytest.mark.parametrize("options", ["workers=0", "workers=2"])
def test_nothing_outlives_a_killed_daemon(mount_daemon, tmp_path, options):
    """Stopped processes end, too: what stores nothing now must not do so later."""
    write(tmp_path / "a.zarr")
    daemon = mount_daemon(tmp_path / "a.zarr", "rw", options, quiet=False)
    workers, nursery = workers_of(daemon.pid), nursery_of(daemon.pid)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    wait_for_end([*workers, nursery])


def test_a_stopped_nursery_holds_up_nobody(mount_daemon, tmp_path):
    data = write(tmp_path / "a.zarr", repeats=2)
    command = (sys.executable, IMPATIENT, "0.5")
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=1,memory=16M", command=command, quiet=False)
    nursery = nursery_of(daemon.pid)
    os.kill(nursery, signal.SIGSTOP)
    os.kill(workers_of(daemon.pid)[0], signal.SIGKILL)
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    daemon.wait_for_log("cannot be replaced")
    wait_for_end([nursery])
    daemon.umount()
    assert daemon.wait() == 0


READ = "import sys; open(sys.argv[1], 'rb').read()"
WRITE = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
while True:
    os.pwrite(file, os.urandom(100), 0)
    os.fsync(file)
"""


@contextmanager
def running(program: str, path: Path) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen([sys.executable, "-c", program, path], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def waits_for_a_page(pid: int) -> bool:
    """Whether a thread waits in the kernel for a page, which not even SIGKILL ends."""
    waits = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/wchan")]
    return any("folio" in wait or "lock_page" in wait for wait in waits)


@pytest.mark.parametrize("nurseries", [1, 2])
def test_a_daemon_killed_while_it_waits_for_itself_frees_its_users(
    mount_daemon, tmp_path, nurseries
):
    """The kernel drops a page for it that somebody reads, whose answer it owes.

    As long as that thread waits, the connection stays open, and whoever reads waits, too.
    """
    write(tmp_path / "a.zarr", repeats=4)
    other = mount_daemon(tmp_path / "a.zarr", "workers=0")
    daemon = mount_daemon(tmp_path / "a.zarr", "rw,workers=1,memory=16M", quiet=False)
    entry = topmost(str(daemon.path))
    if not os.access(f"/sys/fs/fuse/connections/{entry.device[1]}/abort", os.W_OK):
        pytest.skip("whoever runs the tests may not abort a connection")
    nursery = nursery_of(daemon.pid) if nurseries == 1 else kill_nursery(daemon)
    # Reads wait for it, and get no answer for longer than this test takes.
    os.kill(workers_of(daemon.pid)[0], signal.SIGSTOP)
    with (
        running(READ, daemon.path / "array.bin") as reader,
        running(WRITE, daemon.path / "chunks" / "0" / "0" / "0") as writer,
    ):
        wait_until(lambda: waits_for_a_page(daemon.pid))
        daemon.signal(signal.SIGKILL)
        assert daemon.wait() == -signal.SIGKILL
        assert reader.wait(40) == 1
        assert writer.wait(40) == 1
    wait_for_end([nursery])
    # It is the one connection that was broken.
    assert (other.path / "array.bin").stat().st_size
    assert (other.path / "array.bin").read_bytes()
