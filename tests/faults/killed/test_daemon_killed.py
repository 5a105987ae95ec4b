"""A daemon that is killed at any instant leaves each chunk old or new, and all that was synced."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.mount.arrays import stored
from tests.mount.workers.test_workers import children_of, comm
from tests.soak import TIMES

WRITER = Path(__file__).parent / "write_until_killed.py"
ROUNDS = 4 * TIMES
CHUNK = 4096
CHUNKS = 24
KINDS = {
    "plain": {"chunks": (CHUNK,)},
    "sharded": {"chunks": (CHUNK,), "shards": (6 * CHUNK,)},
}
_STORED = re.compile(r"zarr\.json|c/\d+")


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(300)
def test_old_or_new(mount_daemon, tmp_path):
    group = tmp_path / "group.zarr"
    zarr.open_group(group, mode="w")
    for kind, shape in KINDS.items():
        zarr.create_array(group / kind, shape=(CHUNK * CHUNKS,), dtype="u4", **shape)[...] = 0
    # What each chunk may hold: the last value known to be stored, and all that came later.
    allowed: dict[tuple[str, int], set[int]] = defaultdict(lambda: {0})
    place = tmp_path / "mount"
    dice = random.Random(0)
    for number in range(ROUNDS):
        daemon = mount_daemon(group, "rw,flush_delay=0.05", at=place, quiet=False)
        told = _write_until_killed(daemon, number, dice.uniform(0.1, 0.6))
        _take_in(told, daemon.path, allowed)
        for kind in KINDS:
            chunks = stored(group / kind).reshape(CHUNKS, CHUNK)
            for index, chunk in enumerate(chunks):
                values = set(np.unique(chunk).tolist())
                assert len(values) == 1, f"round {number}: {kind} {index} is torn"
                assert values <= allowed[kind, index], f"round {number}: {kind} {index} is lost"
                allowed[kind, index] = values
    assert any(values != {0} for values in allowed.values())
    last = mount_daemon(group, "rw", at=place)
    for kind in KINDS:
        assert (last.path / kind / "array.bin").read_bytes() == stored(group / kind).tobytes()
        files = {p.relative_to(group / kind) for p in (group / kind).rglob("*") if p.is_file()}
        assert [str(f) for f in files if not _STORED.fullmatch(str(f))] == []


def _write_until_killed(daemon, seed: int, seconds: float) -> str:
    directories = [str(daemon.path / kind / "chunks") for kind in KINDS]
    # A buffer would keep lines behind the first from ``communicate``.
    with subprocess.Popen(
        [sys.executable, WRITER, str(seed), *directories], stdout=subprocess.PIPE, bufsize=0
    ) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(seconds)
        if seed % 2:
            # Without the process that unmounts what a killed daemon leaves.
            for child in children_of(daemon.pid):
                if comm(child) == "zarrfs-nursery":
                    os.kill(child, signal.SIGKILL)
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        rest, _ = writer.communicate(timeout=30)
    assert writer.returncode == 0
    return (first + rest).decode()


def _take_in(told: str, path: Path, allowed: dict[tuple[str, int], set[int]]) -> None:
    for line in told.splitlines():
        what, file, value = line.split()
        kind, _, index = Path(file).relative_to(path).parts
        if what == "w":
            allowed[kind, int(index)].add(int(value))
        else:
            allowed[kind, int(index)] = {int(value)}
