"""A daemon that is killed at any change of the store: what a close told is there.

The program has several descriptors of several views, copies of them in itself and in a child,
and mappings.
"""

import shutil
import subprocess
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.faults import close_until_killed
from tests.mount.arrays import stored
from tests.mount.controlled import SCRIPT
from tests.soak import EXHAUSTIVE
from zarrfs.fuse.connection import Connection

SHAPE = (8, close_until_killed.WIDTH)
CHUNK = (close_until_killed.CHUNK_ROWS, close_until_killed.CHUNK_WIDTH)
_SECONDS = 10.0
# How many of the places where it can be killed are left out at a time, but with `make sweep`.
STEP = 12


@pytest.fixture(params=[None, (8, 8)], ids=["plain", "sharded"])
def original(tmp_path: Path, request) -> Path:
    path = tmp_path / "original.zarr"
    zarr.create_array(
        path, data=np.full(SHAPE, 60_000, "<u2"), chunks=CHUNK, shards=request.param, fill_value=0
    )
    return path


def _run(mount_daemon, source: Path, control: Path, at: Path) -> str:
    """What the program tells; the daemon has ended then."""
    daemon = mount_daemon(
        source, "rw,flush_delay=3600,workers=0", at=at, quiet=False,
        command=(sys.executable, SCRIPT, control),
    )  # fmt: skip
    start = (daemon.path / "array.npy").stat().st_size - 2 * int(np.prod(SHAPE))
    program = subprocess.Popen(
        [sys.executable, close_until_killed.__file__, daemon.path, str(start)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        told, _ = program.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        # A thread of the daemon that is dropping pages does not end while the kernel waits for one
        # of them, so the connection stays: the kernel has to be told that nobody answers.
        _abort(daemon.path)
        told, _ = program.communicate(timeout=_SECONDS)
    # The program may need fewer changes of the store than it did before.
    with suppress(AssertionError):
        daemon.umount()
    daemon.wait()
    return told


def _abort(path: Path) -> None:
    connection = Connection.find(str(path))
    assert connection is not None
    held = connection.held()
    assert held.abort()
    held.close()


def _allowed(told: str) -> dict[int, list[int]]:
    """Values that each element may have: the last that is stored for certain, and later ones."""
    history: dict[int, list[tuple[str, int]]] = defaultdict(lambda: [("", 60_000)])
    for line in told.splitlines():
        what, file, *rest = line.split()
        if what == "w":
            element, value = map(int, rest)
            history[element].append((file, value))
            continue
        for values in history.values():
            through = [i for i, (name, _) in enumerate(values) if name == file]
            del values[: max(through, default=0)]
    return {element: [value for _, value in values] for element, values in history.items()}


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_what_a_close_told_is_in_the_store_whenever_the_daemon_is_killed(
    mount_daemon, original, tmp_path
):
    at = tmp_path / "mount"
    source, control = tmp_path / "a.zarr", tmp_path / "control"
    control.mkdir()

    def run() -> dict[int, list[int]]:
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(original, source)
        return _allowed(_run(mount_daemon, source, control, at))

    allowed = run()
    changes = len((control / "changes").read_text())
    assert changes > 10
    assert {len(values) for values in allowed.values()} == {1}
    for kill in range(0, changes, 1 if EXHAUSTIVE else STEP):
        (control / "kill").write_text(str(kill))
        allowed = run()
        found = stored(source).reshape(-1)
        for element, value in enumerate(found.tolist()):
            assert value in allowed.get(element, [60_000]), (kill, element, allowed.get(element))
