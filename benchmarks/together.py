"""``python -m benchmarks.together``: how long programs of one mount wait for one another."""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import zarr
from numcodecs import BZ2

from benchmarks.mounts import command, zarrfs
from benchmarks.remote import contenders
from tests.remote_server import Fault, RemoteServer

_MIB = 1 << 20
_TURNS = 3
_HUNG = 12
_READS = 3


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _at_once(*works: Callable[[], object]) -> float:
    threads = [threading.Thread(target=work) for work in works]

    def run() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return _seconds(run)


def two_writers(directory: Path) -> Iterator[str]:
    """Two programs write the halves of an array through two files."""
    source = directory / "two.zarr"
    zarr.create_array(source, shape=(32, _MIB), chunks=(4, _MIB // 4), dtype="u1", compressors=None)
    turns = [_two_writers(source, directory / f"two-{turn}") for turn in range(_TURNS)]
    alone, together, asked = zip(*turns, strict=True)
    ratio = statistics.median(together) / statistics.median(alone)
    yield _row("two writers of 16 MiB through two files, times one alone", f"{ratio:.2f}", "4")
    yield _row("`stats.json` meanwhile, s", f"{statistics.median(asked):.2f}", "1")


def _two_writers(source: Path, point: Path) -> tuple[float, float, float]:
    """Seconds that one takes, that both take, and that a look at the status takes meanwhile."""
    half = os.urandom(16 * _MIB)
    asked: list[float] = []
    with zarrfs(source, point, "two", [], ("rw",)) as mount:
        flat = os.open(mount.path / "array.bin", os.O_RDWR)
        other = os.open(mount.path / "array.npy", os.O_RDWR)
        header = os.fstat(other).st_size - os.fstat(flat).st_size

        def first() -> None:
            os.pwrite(flat, half, 0)

        def second() -> None:
            os.pwrite(other, half, header + len(half))

        def status() -> None:
            asked.append(_seconds((mount.path / ".zarrfs/stats.json").read_bytes))

        alone = _seconds(first)
        together = _at_once(first, second, status)
        os.close(flat)
        os.close(other)
    return alone, together, asked[0]


def fsync_beside_a_read(directory: Path) -> Iterator[str]:
    """One array is synced while a chunk of another one is decoded for seconds."""
    group = zarr.create_group(directory / "slow.zarr", zarr_format=2)
    slow = group.create_array(
        "slow", shape=(_READS, 8 * _MIB), chunks=(1, 8 * _MIB), dtype="u1", compressors=BZ2(level=9)
    )
    slow[...] = np.random.default_rng(1).integers(0, 256, slow.shape, np.uint8)
    group.create_array("quick", shape=(_MIB,), chunks=(_MIB,), dtype="u1")
    waits: dict[bool, list[float]] = {False: [], True: []}
    took = []
    with zarrfs(directory / "slow.zarr", directory / "slow", "slow", [], ("rw",)) as mount:
        file = os.open(mount.path / "quick/array.bin", os.O_RDWR)
        for row in range(_READS):
            for beside in (False, True):

                def read(row: int = row) -> None:
                    took.append(_seconds((mount.path / f"slow/chunks/{row}/0").read_bytes))

                reader = threading.Thread(target=read)
                if beside:
                    reader.start()
                    time.sleep(0.1)
                os.pwrite(file, os.urandom(100), row)
                waits[beside].append(_seconds(lambda: os.fsync(file)))
                if beside:
                    reader.join()
        os.close(file)
    more = statistics.median(waits[True]) - statistics.median(waits[False])
    what = f"fsync beside a read of {statistics.median(took):.1f} s, s more than alone"
    yield _row(what, f"{more:.2f}", "0.1")


def end_with_hung_reads(directory: Path) -> Iterator[str]:
    """SIGTERM while a store answers no read."""
    with RemoteServer() as server:
        root = directory / "hung.zarr"
        zarr.create_array(root, data=np.zeros((_HUNG, 9), "u1") + 1, chunks=(1, 9))
        files = {str(p.relative_to(directory)): p for p in root.rglob("*") if p.is_file()}
        server.make_bucket("b", {name: path.read_bytes() for name, path in files.items()})
        os.environ.update(contenders.environment(server.url))
        words = [*command(), "mount", "-f", "s3://b/hung.zarr", str(directory / "hung")]
        words += ["-o", f"log_file={directory}/hung.log"]
        (directory / "hung").mkdir()
        daemon = os.posix_spawn(words[0], words, os.environ)
        while not (directory / "hung/array.bin").exists():
            time.sleep(0.1)
        server.plan = lambda _method, _target: Fault.HANG

        def read(row: int) -> None:
            # It fails when the mount ends.
            with suppress(OSError):
                (directory / f"hung/chunks/{row}/0").read_bytes()

        threads = [threading.Thread(target=read, args=(row,)) for row in range(_HUNG)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        os.kill(daemon, signal.SIGTERM)
        status = []
        took = _seconds(lambda: status.append(os.waitstatus_to_exitcode(os.waitpid(daemon, 0)[1])))
        for thread in threads:
            thread.join()
        yield _row(f"SIGTERM with {_HUNG} hung reads, s; exit {status[0]}", f"{took:.1f}", "12")


def _row(what: str, found: str, most: str) -> str:
    return f"| {what} | {found} | ≤ {most} |"


def main() -> None:
    print("| | found | must |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="zarrfs-together-") as name:
        for table in (two_writers, fsync_beside_a_read, end_with_hung_reads):
            for line in table(Path(name)):
                print(line)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
