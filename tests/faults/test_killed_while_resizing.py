"""A daemon that is killed while an array grows or shrinks leaves a shape that was asked for."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.mount.arrays import stored

ROW = 100
FILL = 0xFFFF
# Row i holds i everywhere. It tells how many rows are synced, or about to be given up.
CHANGE = """
import os, random, struct, sys
dice = random.Random(int(sys.argv[2]))
rows = os.path.getsize(sys.argv[1]) // 200
with open(sys.argv[1], 'r+b', buffering=0) as file:
    try:
        while True:
            if dice.random() < 0.25:
                rows = dice.randrange(rows + 1)
                print('least', rows, flush=True)
                os.ftruncate(file.fileno(), rows * 200)
                continue
            for _ in range(dice.randint(1, 9)):
                os.pwrite(file.fileno(), struct.pack('<H', rows) * 100, rows * 200)
                rows += 1
            if dice.random() < 0.7:
                os.fsync(file.fileno())
                print('synced', rows, flush=True)
    except OSError:
        os._exit(0)
"""


@pytest.mark.parametrize("shards", [None, (8, 60)], ids=["plain", "sharded"])
def test_killed_while_resizing(mount_daemon, tmp_path: Path, shards):
    source = tmp_path / "a.zarr"
    zarr.create_array(
        source, shape=(0, ROW), chunks=(4, 30), shards=shards, dtype="<u2", fill_value=FILL
    )
    place = tmp_path / "mount"
    dice = random.Random(1)
    for number in range(2):
        daemon = mount_daemon(source, "rw,resize,flush_delay=0.02", at=place, quiet=False)
        least = len(stored(source))
        with subprocess.Popen(
            [sys.executable, "-c", CHANGE, daemon.path / "array.bin", str(number)],
            stdout=subprocess.PIPE, text=True,
        ) as program:  # fmt: skip
            assert program.stdout is not None
            first = program.stdout.readline()
            time.sleep(dice.uniform(0.05, 0.4))
            daemon.signal(signal.SIGKILL)
            daemon.wait()
            rest, _ = program.communicate(timeout=30)
        # What was synced is there, unless it was given up since.
        for line in (first + rest).splitlines():
            least = int(line.split()[1])
        found = stored(source)
        assert len(found) >= least
        wanted = np.repeat(np.arange(len(found), dtype="<u2")[:, None], ROW, axis=1)
        assert np.array_equal(found[:least], wanted[:least])
        # Whatever was not synced is either there or not, element by element.
        assert ((found == wanted) | (found == FILL)).all()
        # Leftovers beyond the end do not come in.
        daemon = mount_daemon(source, "rw,resize", at=place)
        os.truncate(daemon.path / "array.bin", (len(found) + 50) * 2 * ROW)
        assert (stored(source)[len(found) :] == FILL).all()
        # The next round begins with rows that are all there.
        whole = (found == wanted).all(axis=1).tolist()
        kept = [*whole, False].index(False)
        os.truncate(daemon.path / "array.bin", kept * 2 * ROW)
        daemon.umount()
        daemon.wait()
