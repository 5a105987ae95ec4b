"""``python -m benchmarks.remote``: prints the tables, as Markdown."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from benchmarks.remote import contenders
from benchmarks.remote.store import BUCKET, MIB, RemoteStore, running

_BANDWIDTH = 40e6
_READS = 24


class Run:
    """One distance.

    ms : latency of a request, and of a new connection, in milliseconds.
    """

    def __init__(self, store: RemoteStore, directory: Path, ms: float) -> None:
        self.store, self.directory, self.ms = store, directory, ms
        self._mounts = 0

    def url(self, kind: str, name: str) -> str:
        return f"s3://{BUCKET}/{name}" if kind == "s3" else f"{self.store.url}/{BUCKET}/{name}"

    def mounted(self, kind: str, name: str, *options: str) -> AbstractContextManager[Path]:
        self._mounts += 1
        point = self.directory / f"mount-{self.ms:g}-{self._mounts}"
        return contenders.mount(self.url(kind, name), self.store.url, point, *options)

    def scans(self) -> Iterator[str]:
        yield "| sequential read, MB/s | zarrfs | TensorStore | zarr-python | bytes / stored |"
        yield "|---|---|---|---|---|"
        for kind in ("s3", "http"):
            for name in ("plain", "sharded"):
                with self.mounted(kind, name) as point:
                    self.store.reset()
                    seconds, count = contenders.timed(
                        lambda: contenders.read_file(point / "array.bin")
                    )
                    ours = count / seconds
                    counts = self.store.counts()
                fetched = counts["sent"] / self.store.sizes[name]
                figures = [ours, *(self.apart(f"{peer}(KIND, URL, '{name}')", kind)
                                   for peer in ("tensorstore_read", "zarr_python"))]  # fmt: skip
                shown = " | ".join(f"{figure / 1e6:.0f}" for figure in figures)
                asked = sum(counts["requests"].values())
                yield (
                    f"| {kind}, {name} | {shown} | {fetched:.3f} "
                    f"({asked} requests, {counts['most_in_flight']} in flight) |"
                )

    def at_random(self) -> Iterator[str]:
        yield "| read of 4 KiB at random, index known | median ms | round trips |"
        yield "|---|---|---|"
        for kind in ("s3", "http"):
            for name in ("plain", "sharded"):
                with self.mounted(kind, name, "memory=64M") as point:
                    path = point / "array.bin"
                    size = path.stat().st_size
                    # First somewhere in each shard: its index is known then.
                    contenders.read_at(path, np.arange(8 * MIB, size, 8 * MIB) - 4096, 4096)
                    places = np.random.default_rng(2).permutation(size // 4096)[:_READS] * 4096
                    seconds = contenders.read_at(path, places, 4096)
                median = float(np.median(seconds))
                trips = f"{median * 1e3 / self.ms:.2f}" if self.ms else "-"
                yield f"| {kind}, {name} | {median * 1e3:.1f} | {trips} |"

    def listing(self) -> Iterator[str]:
        yield "| `ls -l` of 200 arrays | seconds | round trips in time | requests |"
        yield "|---|---|---|---|"
        with self.mounted("s3", "many") as point:
            for which in ("first", "again"):
                self.store.reset()

                def listed() -> int:
                    subprocess.run(["ls", "-l", point], check=True, stdout=subprocess.DEVNULL)
                    return 0

                seconds, _ = contenders.timed(listed)
                asked = sum(self.store.counts()["requests"].values())
                trips = f"{seconds * 1e3 / self.ms:.1f}" if self.ms else "-"
                yield f"| {which} | {seconds:.2f} | {trips} | {asked} |"

    def writes(self) -> Iterator[str]:
        yield "| whole-array write, MB/s | zarrfs | TensorStore | zarr-python |"
        yield "|---|---|---|---|"
        data = self.directory / "written.bin"
        content = data.read_bytes()

        def write(point: Path) -> int:
            with (point / "array.bin").open("r+b", buffering=0) as file:
                for at in range(0, len(content), MIB):
                    file.write(content[at : at + MIB])
            return len(content)

        with self.mounted("s3", "written", "rw") as point:
            seconds, count = contenders.timed(lambda: write(point))
        peers = ("tensorstore_write", "zarr_python")
        calls = [f"{peer}(KIND, URL, 'written', {str(data)!r})" for peer in peers]
        figures = [count / seconds, *(self.apart(call, "s3") for call in calls)]
        yield "| s3, plain | " + " | ".join(f"{figure / 1e6:.0f}" for figure in figures) + " |"

    def apart(self, call: str, kind: str) -> float:
        """Bytes a second of a library, in a process of its own."""
        program = (
            "from benchmarks.remote.contenders import *\n"
            f"KIND, URL = {kind!r}, {self.store.url!r}\n"
            f"seconds, count = timed(lambda: {call})\nprint(count / seconds)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
        )
        return float(done.stdout)


TABLES: dict[str, Callable[[Run], Iterator[str]]] = {
    "scans": Run.scans,
    "random": Run.at_random,
    "listing": Run.listing,
    "writes": Run.writes,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.remote")
    parser.add_argument("--ms", type=float, nargs="*", default=[0, 10, 50])
    parser.add_argument("--mib", type=int, default=256, help="decoded size of an array")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="default: all")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zarrfs-remote-") as name:
        directory = Path(name)
        with running(directory, given.mib) as store:
            for ms in given.ms:
                store.link(ms / 1e3, _BANDWIDTH)
                print(f"\n## {ms:g} ms\n")
                run = Run(store, directory, ms)
                for table in given.tables or TABLES:
                    for line in TABLES[table](run):
                        print(line, flush=True)
                    print()


main()
