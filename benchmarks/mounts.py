"""Mounts to measure: zarrfs by its real command, and the file system in C."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_END_SECONDS = 120.0
_READY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory that a daemon had, and what it was allowed for data, in bytes."""

    row: str
    highest: int
    budget: int


@dataclass(frozen=True, slots=True)
class Mounted:
    path: Path
    pid: int

    @property
    def flat(self) -> Path:
        return self.path / "array.bin"

    def chunk_file(self, indices: Sequence[int]) -> Path:
        return self.path.joinpath("chunks", *map(str, indices))


def command() -> list[str]:
    """``zarrfs`` as it is installed beside this Python."""
    script = Path(sys.executable).with_name("zarrfs")
    return [str(script)] if script.exists() else [sys.executable, "-m", "zarrfs"]


@contextmanager
def zarrfs(
    source: Path, point: Path, row: str, peaks: list[Peak], options: Sequence[str] = ()
) -> Iterator[Mounted]:
    """Mounts ``source`` at ``point``; notes the daemon's peak memory before it ends."""
    point.mkdir(parents=True, exist_ok=True)
    words = [*command(), "mount", str(source), str(point)]
    for option in (f"log_file={point}.log", *options):
        words += ["-o", option]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    pid = json.loads((point / ".zarrfs/config.json").read_bytes())["pid"]
    try:
        yield Mounted(point, pid)
        budget = json.loads((point / ".zarrfs/stats.json").read_bytes())["memory"]["budget"]
        peaks.append(Peak(row, _highest(pid), budget))
    except BaseException:
        # Whatever became of it, it is not what this is about.
        _release(point, "-z", check=False)
        raise
    if "rw" in options:
        # Tells whether all that was written could be stored.
        subprocess.run([*command(), "umount", str(point)], check=True, timeout=_END_SECONDS)
    else:
        _release(point)
        _wait(pid)


@contextmanager
def memfs(program: Path, point: Path, size: int, *, direct: bool = False) -> Iterator[Mounted]:
    """Mounts the file system in C with a file of ``size`` bytes.

    direct : its file is never in the page cache.
    """
    point.mkdir(parents=True, exist_ok=True)
    words = [str(program), str(point), str(size)] + ["direct"] * direct
    process = subprocess.Popen(words)
    try:
        give_up = time.monotonic() + _READY_SECONDS
        while not (point / "array.bin").exists():
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"{words} does not mount")
            time.sleep(0.01)
        yield Mounted(point, process.pid)
        _release(point)
        process.wait(_READY_SECONDS)
    except BaseException:
        _release(point, "-z", check=False)
        raise
    finally:
        process.kill()
        process.wait()


def _release(point: Path, *words: str, check: bool = True) -> None:
    """Unmounts whatever is at ``point``."""
    tool = shutil.which("fusermount3") or "fusermount"
    subprocess.run([tool, "-u", *words, str(point)], check=check, capture_output=not check)


def _wait(pid: int) -> None:
    """Until that process is gone, so that the next one has the machine to itself."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(_END_SECONDS * 1000):
                raise TimeoutError(f"daemon {pid} does not end")
        finally:
            os.close(descriptor)


def _highest(pid: int) -> int:
    """The most memory that a daemon and the processes that it has forked had.

    A page that several of them share counts once. What each of them had more at its peak than now
    is added, so the sum is too large if they had their peaks at different times.
    """
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    highest = 0
    for each in (pid, *map(int, children)):
        status = _sizes(each, "status")
        highest += _sizes(each, "smaps_rollup")["Pss"] + status["VmHWM"] - status["VmRSS"]
    return highest


def _sizes(pid: int, file: str) -> dict[str, int]:
    """What is in memory of a process, in bytes, as a file in /proc says."""
    found = {}
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name] = int(value.split()[0]) * 1024
    return found
