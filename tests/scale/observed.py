"""What a daemon takes of its machine."""

import os
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """memory : resident bytes of the daemon that are in no file. workers : the same of its
    children. descriptors, threads : of the daemon and its children.
    """

    memory: int
    workers: int
    descriptors: int
    threads: int

    def __str__(self) -> str:
        return (
            f"{self.memory / 1e6:8.1f} MB {self.workers / 1e6:8.1f} MB of workers"
            f" {self.descriptors:6} descriptors {self.threads:4} threads"
        )


def usage(pid: int) -> Usage:
    """What the daemon takes now."""
    processes = [pid, *_children(pid)]
    memory = [_anonymous(process) for process in processes]
    return Usage(
        memory[0],
        sum(memory[1:]),
        sum(len(os.listdir(f"/proc/{process}/fd")) for process in processes),
        sum(len(os.listdir(f"/proc/{process}/task")) for process in processes),
    )


def _children(pid: int) -> list[int]:
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found


def _anonymous(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} tells no memory")
