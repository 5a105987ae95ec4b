"""A workload of several mounts that is killed, or failed, at any of its operations.

Run as a program it is a server: one job a line of JSON on stdin, one answer a line on stdout.
Each job runs the workload in a fork, without a kernel, and then has a last mount replay the
journal and compares what is stored with what was acknowledged.

A job: ``kind``, ``mode`` and ``at``, which operation is hit, counted from 1. Modes:

count : nothing is hit; the answer says how many operations there are.
kill : SIGKILL before the operation.
torn : SIGKILL when half of a write is done.
ENOSPC, EIO, EACCES : the operation of the operating system fails with that, once.
timeout : a call of the store raises StoreTimeout, once. Counts these calls.

What is counted: calls that change what is on disk, by the store and by the journal. The
answer: ``operations`` that were seen, ``hit``, the operation that was; ``wrong``, what is wrong;
``told``, whether anybody heard of an error.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.faults.journals import full
from tests.fs.loop import Loop
from tests.fs.writable import Writable, WritableFile
from zarrfs.array.making.resize import Resize
from zarrfs.errors import StoreFull, StoreTimeout, ZarrfsError
from zarrfs.store.local.local import LocalStore

FILL = 9
WIDTH = 64
ITEM = 4
KINDS = {
    "chunks": {"shape": (64, WIDTH), "chunks": (32, 32)},
    "shards": {"shape": (64, WIDTH), "chunks": (32, 32), "shards": (64, WIDTH)},
    "rows": {"shape": (6, WIDTH), "chunks": (4, WIDTH)},
}
MODES = ("kill", "torn", "ENOSPC", "EIO", "EACCES", "timeout")

_CHANGING = (
    *("write", "writev", "pwrite", "fsync", "fdatasync", "rename", "link", "unlink", "rmdir"),
    *("mkdir", "ftruncate", "fchmod", "chmod", "symlink", "utime", "fchown"),
)
_CALLS = ("get", "get_ranges", "info", "put", "put_many", "delete")


class Operations:
    """Counts operations, and hits one of them."""

    def __init__(self, mode: str, at: int) -> None:
        self.mode = mode
        self.at = at
        self.count = 0
        self.hit: str | None = None
        self._lock = threading.Lock()

    def next(self, name: str) -> bool:
        """Whether this one is to be hit."""
        with self._lock:
            self.count += 1
            hit = self.count == self.at and self.mode != "count"
            if hit:
                self.hit = name
            return hit

    def watch_system(self) -> None:
        for name in _CHANGING:
            setattr(os, name, self._watched(name, getattr(os, name)))
        opened = os.open

        def watched_open(path, flags, *args, **keywords):
            if flags & os.O_CREAT and self.next("open"):
                self._strike(lambda: None)
            return opened(path, flags, *args, **keywords)

        os.open = watched_open

    def _watched(self, name: str, call: Callable) -> Callable:
        def watched(*args, **keywords):
            if self.next(name):
                half = None
                if name == "write":
                    half = lambda: call(args[0], bytes(args[1])[: len(args[1]) // 2])  # noqa: E731
                elif name == "writev":
                    data = b"".join(args[1])
                    half = lambda: os.pwrite(args[0], data[: len(data) // 2], 0)  # noqa: E731
                self._strike(half)
            return call(*args, **keywords)

        return watched

    def _strike(self, half: Callable | None) -> None:
        if self.mode == "torn" and half is not None:
            half()
        if self.mode in ("kill", "torn"):
            os.kill(os.getpid(), signal.SIGKILL)
        number = getattr(errno, self.mode)
        raise OSError(number, os.strerror(number))


class SweptStore:
    """A store on disk that is full when told, and of which a call may time out."""

    def __init__(self, inner: LocalStore, operations: Operations | None) -> None:
        self._inner = inner
        self._operations = operations
        self.full = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in _CALLS:
            return found

        def call(*args, **keywords):
            if self.full and name == "put":
                full(args[0])
            if self.full and name == "put_many":
                return [StoreFull(put.key, "there is no room") for put in args[0]]
            if self._operations is not None and self._operations.next(name):
                raise StoreTimeout(str(args[0]), "by this test")
            return found(*args, **keywords)

        return call


class Mount(Writable):
    """One mount of the workload, which records what it is acknowledged."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.swept = SweptStore(LocalStore(run.source), run.calls)
        super().__init__(
            run.loop,
            self.swept,
            flush_delay=3600,
            journal=str(run.journal),
            resize=run.kind == "rows",
        )
        self.accepted: dict[str, list[int]] = {}

    def write(self, name: str, file: WritableFile, row: int, column: int, count: int) -> None:
        """Write ``count`` elements, all of a new value, through ``file``, which is of ``name``."""
        offset = (row * WIDTH + column) * ITEM
        number = self.run.issue(row, column, count)
        try:
            file.write(offset, number.to_bytes(ITEM, "little") * count)
        except ZarrfsError as error:
            self.run.tell(error)
        else:
            self.accepted.setdefault(name, []).append(number)

    def asked(self, name: str, ask: Callable[[], object]) -> None:
        """Call fsync or close of the file ``name``."""
        numbers = list(self.accepted.get(name, ()))
        try:
            ask()
        except ZarrfsError as error:
            self.run.tell(error)
        else:
            self.run.acknowledge(numbers)

    def end(self) -> None:
        errors = self.fs.drain()
        lost = [error for error in errors if "cannot be kept" in str(error)]
        kept = [error for error in errors if "the next mount with -o rw stores them" in str(error)]
        for error in errors:
            self.run.tell(error)
        if not errors or (kept and not lost):
            self.run.acknowledge([number for some in self.accepted.values() for number in some])
        elif lost:
            self.run.excuse()
        self.close()


class Run:
    """One run of the workload; what it does is in a log that survives it."""

    def __init__(self, kind: str, place: Path, operations: Operations) -> None:
        self.kind = kind
        self.source = place / "a.zarr"
        self.journal = place / "journal"
        self.calls = operations if operations.mode in ("timeout", "count calls") else None
        self.rows = KINDS[kind]["shape"][0]
        self._log = os.open(place / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._write = os.write
        self._number = 1000
        if self.calls is None:
            operations.watch_system()
        self.loop = Loop()

    def issue(self, row: int, column: int, count: int) -> int:
        self._number += 1
        self.note("issued", self._number, row, column, count)
        return self._number

    def acknowledge(self, numbers: list[int]) -> None:
        if numbers:
            self.note("acknowledged", *numbers)

    def tell(self, error: Exception) -> None:
        if "there is no room" not in str(error) and "the next mount with -o rw" not in str(error):
            self.note("told", str(error))

    def excuse(self) -> None:
        """Of what could not be kept, the user has been told."""
        self.note("excused")

    def note(self, *what: object) -> None:
        self._write(self._log, json.dumps(what).encode() + b"\n")

    def mount(self) -> Mount:
        """A fault may keep one from starting; then it is tried again, as its user would."""
        try:
            return Mount(self)
        except ZarrfsError as error:
            self.tell(error)
            return Mount(self)

    def go(self) -> None:
        """Two mounts of one array, several handles; full, kept, replayed, and that once more."""
        rows = self.rows
        first, second = self.mount(), self.mount()
        one, two = first.edit("array.bin"), first.edit("array.bin")
        npy = None if self.kind == "rows" else first.edit("chunks/0/0")
        other = second.edit("array.bin")
        first.write("bin", one, 0, 0, 3)
        first.write("bin", two, 1, 0, WIDTH // 2)
        second.write("bin", other, 0, 3, 3)
        first.asked("bin", one.fsync)
        second.asked("bin", other.fsync)
        if npy is not None:
            # Of the first chunk, whose rows are of half the width.
            self._write_chunk(first, npy)
        first.write("bin", one, 0, 0, 2)
        first.write("bin", two, rows - 1, 40, 4)
        first.asked("bin", two.flush)
        if self.kind == "rows":
            first.write("bin", one, rows + 1, 0, WIDTH)
            first.asked("bin", one.fsync)
        for mount in (first, second):
            mount.swept.full = True
        first.write("bin", one, 0, 0, 1)
        first.write("bin", one, rows // 2, 10, 20)
        second.write("bin", other, 0, 4, 1)
        second.write("bin", other, rows // 2, 30, 20)
        if self.kind == "rows":
            first.write("bin", one, rows + 3, 0, WIDTH)
        first.asked("bin", one.fsync)
        first.end()
        second.end()
        third = self.mount()
        file = third.edit("array.bin")
        third.write("bin", file, 0, 5, 3)
        third.asked("bin", file.fsync)
        third.write("bin", file, 0, 6, 3)
        third.swept.full = True
        third.write("bin", file, rows - 1, 0, 9)
        third.end()
        self.mount().end()
        self.note("done")

    def _write_chunk(self, mount: Mount, file: WritableFile) -> None:
        number = self.issue(3, 0, 32)
        try:
            file.write(3 * 32 * ITEM, number.to_bytes(ITEM, "little") * 32)
        except ZarrfsError as error:
            self.tell(error)
        else:
            mount.accepted.setdefault("chunk", []).append(number)
            mount.asked("chunk", file.fsync)


def make(kind: str, path: Path) -> None:
    import zarr

    zarr.create_array(path, dtype="<i4", fill_value=FILL, **KINDS[kind])[...] = 1


def check(kind: str, place: Path) -> dict[str, Any]:
    """What is wrong after a last mount, and whether the workload was told of anything."""
    wrong: list[str] = []
    log = [json.loads(line) for line in (place / "log").read_text().splitlines()]
    loop = Loop()
    store = LocalStore(place / "a.zarr")
    journal = place / "journal"
    try:
        mount = Writable(loop, store, journal=str(journal), resize=kind == "rows")
        wrong += [f"the last mount could not store: {error}" for error in mount.fs.drain()]
        data = np.frombuffer(mount.read("array.bin"), "<i4").reshape(-1, WIDTH)
        mount.close()
    except ZarrfsError as error:
        return {"wrong": [f"the last mount does not start: {error}"], "told": True}
    excused = any(entry[0] == "excused" for entry in log)
    acknowledged = {number for entry in log if entry[0] == "acknowledged" for number in entry[1:]}
    # In a run that was not cut short, all is stored in the end.
    finished = any(entry[0] == "done" for entry in log)
    cells: dict[tuple[int, int], list[int]] = {}
    for _, number, row, column, count in (entry for entry in log if entry[0] == "issued"):
        for at in range(column, column + count):
            cells.setdefault((row, at), [1 if row < KINDS[kind]["shape"][0] else FILL]).append(
                number
            )
    for (row, column), values in cells.items():
        sure = [i for i, value in enumerate(values) if value in acknowledged]
        allowed = values[max(sure, default=0) :]
        found = int(data[row, column]) if row < len(data) else None
        if found is None:
            if sure and not excused:
                wrong.append(f"row {row} is lost")
        elif found not in allowed and not (excused and found in values):
            wrong.append(f"element {row, column} is {found}, of {values} acknowledged {sure}")
    untouched = data[: KINDS[kind]["shape"][0]].copy()
    for row, column in cells:
        if row < len(untouched):
            untouched[row, column] = 1
    if (untouched != 1).any():
        wrong.append("elements that nobody wrote have changed")
    if journal.exists() and not excused:
        wrong += [f"left in the journal: {path.name}" for path in journal.rglob("*")]
    # Of a killed run, whoever writes next removes the temporary files.
    if finished:
        wrong += [
            f"left behind: {path}" for path in (place / "a.zarr").rglob(".zarrfs-tmp-*/*.[0-9]*")
        ]
    return {"wrong": wrong[:20], "told": any(entry[0] == "told" for entry in log)}


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job, in forks."""
    place = Path(tempfile.mkdtemp(prefix="sweep", dir=job["place"]))
    try:
        shutil.copytree(Path(job["place"]) / f"{job['kind']}.zarr", place / "a.zarr")
        status, counted = _forked(lambda: _go(job, place))
        counted = counted or {}
        hit_dead = job["mode"] in ("kill", "torn") and status == -signal.SIGKILL
        if status and not hit_dead:
            return {"wrong": [f"the run ended with {status}: {counted}"], **counted}
        _, found = _forked(lambda: check(job["kind"], place))
        found = found or {"wrong": ["the check failed"], "told": False}
        return {"operations": 0, "hit": "killed" if hit_dead else None, **counted, **found}
    finally:
        shutil.rmtree(place)


def _go(job: dict[str, Any], place: Path) -> dict[str, Any]:
    operations = Operations(job["mode"], job["at"])
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    run = Run(job["kind"], place, operations)
    run.go()
    told = [text for text in warnings if "there is no room" not in text]
    if told:
        run.note("told", told[0])
    return {"operations": operations.count, "hit": operations.hit}


def _forked(work: Callable[[], dict[str, Any]]) -> tuple[int, dict[str, Any] | None]:
    """The exit status of a fork that does ``work``, and what it returned."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        write = os.write
        try:
            signal.alarm(60)
            answer = json.dumps(work()).encode()
            while answer:
                answer = answer[write(writing, answer) :]
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - told to the parent
            import traceback

            write(
                writing, json.dumps({"failed": traceback.format_exc(), "e": repr(error)}).encode()
            )
            os._exit(3)
    os.close(writing)
    with open(reading, "rb") as file:
        data = file.read()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), json.loads(data) if data else None


def main() -> None:
    # What is imported late would be imported in each fork.
    assert Resize
    place = Path(sys.argv[1])
    for kind in KINDS:
        _forked(lambda kind=kind: make(kind, place / f"{kind}.zarr") or {})
    for line in sys.stdin:
        print(json.dumps(run({**json.loads(line), "place": str(place)})), flush=True)


if __name__ == "__main__":
    main()
