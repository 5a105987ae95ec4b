"""Daemons that are killed while their nurseries fork workers; prints the processes that are left.

Usage: killed_daemons.py COUNT
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from zarrfs.jobs.nursery import Nursery
from zarrfs.jobs.worker import WorkerConfig
from zarrfs.memory.shared_memory import SharedMemory


def fork_for_ever(connection: int) -> None:
    """A daemon that wants ever more workers, and has its own session."""
    os.setsid()
    config = WorkerConfig(lambda: None, None, SharedMemory(1 << 20), 0)
    nursery = Nursery(config, lambda *_: None, 20.0)
    workers = []
    os.write(connection, b".")
    while True:
        workers.append(nursery.spawn())


def living(session: int) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        state, _, _, its = text.rpartition(")")[2].split()[:4]
        if int(its) == session and state not in "ZX":
            found.append(text.rpartition(")")[0])
    return found


def main(count: int) -> None:
    for turn in range(count):
        ours, theirs = os.pipe()
        daemon = os.fork()
        if not daemon:
            fork_for_ever(theirs)
        os.close(theirs)
        assert os.read(ours, 1) == b"."
        os.close(ours)
        pause = time.monotonic() + random.Random(turn).uniform(0, 0.03)
        while time.monotonic() < pause:
            pass
        os.kill(daemon, signal.SIGKILL)
        os.waitpid(daemon, 0)
        give_up = time.monotonic() + 15
        while (left := living(daemon)) and time.monotonic() < give_up:
            time.sleep(0.001)
        if left:
            print(turn, *left)
    print("done")


if __name__ == "__main__":
    main(int(sys.argv[1]))
