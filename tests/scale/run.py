"""Processes that work on a mount together, and what the daemon takes in between."""

import json
import multiprocessing
import os
import resource
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from tests.scale.client import Client
from tests.scale.observed import Usage, usage
from zarrfs.daemon.inquiry import ask

TENTHS = 10
_SLACK = 24 << 20  # bytes: what the allocator of a busy daemon keeps, more or less
_SPARE = 8  # descriptors or threads of pools that grow when there is more to do at once
_PATIENCE_S = 300  # in which the mount has to answer something


class Scale(NamedTuple):
    """How much there is of what.

    chunks : of each array. handles : open at the same time, by all processes.
    operations : of one process in a tenth of the work; or seconds : of all the work.
    """

    arrays: int
    chunks: int
    handles: int
    processes: int
    operations: int = 0
    seconds: float = 0


def run(scale: Scale, mnt: Path, pid: int) -> dict[str, Usage]:
    """Has processes work on a mount whose daemon is ``pid``; its usage at each stage.

    Raises AssertionError where a process saw what must not be.
    """
    usages: dict[str, Usage] = {}

    def note(stage: str) -> None:
        usages[stage] = usage(pid)
        print(f"{stage:24} {usages[stage]}", flush=True)

    note("mounted")
    processes = _Processes(scale, mnt)
    try:
        names = sum(processes.all("look_up"))
        note(f"{names} names")
        processes.all("open_handles", scale.handles // scale.processes)
        note(f"{scale.handles // scale.processes * scale.processes} handles")
        assert _stats(mnt)["open_files"] >= scale.handles // scale.processes * scale.processes
        processes.all("close_handles")
        _flush(mnt)
        note("handles closed")
        for tenth in range(1, TENTHS + 1):
            processes.all("work", scale.operations, scale.seconds / TENTHS)
            _flush(mnt)
            note(f"tenth {tenth}")
        print(f"{sum(processes.all('counted'))} operations", flush=True)
    finally:
        processes.close()
    # The one that is read from is open.
    assert _stats(mnt)["open_files"] <= 1, _stats(mnt)["open_files"]
    note("end")
    return usages


def grown(usages: dict[str, Usage]) -> list[str]:
    """What grew from the third tenth of the work to the end."""
    before, after = usages["tenth 3"], usages["end"]
    problems = []
    most = max(before.memory + before.workers, 1) * 1.05 + _SLACK
    if after.memory + after.workers > most:
        problems.append(f"memory: from {before.memory} to {after.memory}")
    return problems + [
        f"{what}: from {getattr(before, what)} to {getattr(after, what)}"
        for what in ("descriptors", "threads")
        if getattr(after, what) > getattr(before, what) + _SPARE
    ]


def _stats(mnt: Path) -> Any:
    return json.loads((mnt / ".zarrfs/stats.json").read_text())


def _flush(mnt: Path) -> None:
    """Has the mount store what was written."""
    handle = os.open(mnt, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Processes:
    def __init__(self, scale: Scale, mnt: Path) -> None:
        context = multiprocessing.get_context("fork")
        self._mnt = mnt
        self._pairs = []
        for own in range(scale.processes):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, scale, mnt, own), daemon=True)
            process.start()
            there.close()
            self._pairs.append((process, here))

    def all(self, method: str, *arguments: Any) -> list[int]:
        """Calls a method of each process's client at the same time."""
        for _, pipe in self._pairs:
            pipe.send((method, arguments))
        found = []
        for _, pipe in self._pairs:
            # A busy machine may take hours, so only a standstill is a failure.
            before = None
            while not pipe.poll(_PATIENCE_S):
                now = self._progress()
                assert now != before, f"a process hangs: {now}"
                before = now
            problem, value = pipe.recv()
            assert problem is None, problem
            found.append(value)
        return found

    def _progress(self) -> dict[str, Any]:
        """Counts that change while the mount answers. Raises NoAnswer if it does not."""
        (stats,) = ask(str(self._mnt), ["stats.json"], _PATIENCE_S)
        counts = {name: stats[name] for name in ("known_nodes", "open_files", "writes", "cache")}
        return counts | {"requests": stats["store"]["requests"]}

    def close(self) -> None:
        # The ends of other processes' pipes are open in each, so that none sees its own end.
        for _, pipe in self._pairs:
            with suppress(OSError):
                pipe.send(None)
        for process, pipe in self._pairs:
            process.join(60)
            pipe.close()
            if process.is_alive():
                process.kill()


def _serve(pipe: Connection, scale: Scale, mnt: Path, own: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    client = Client(mnt, own, scale.processes, scale.arrays, scale.chunks)
    while True:
        if (asked := pipe.recv()) is None:
            return
        method, arguments = asked
        try:
            if method == "counted":
                pipe.send((None, client.operations))
            else:
                pipe.send((None, getattr(client, method)(*arguments)))
        except BaseException:  # noqa: BLE001 - the parent tells it
            pipe.send((traceback.format_exc(), None))
