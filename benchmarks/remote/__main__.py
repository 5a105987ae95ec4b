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

from benchmarks.remote import contenders, counted
from benchmarks.remote.contenders import Mount, Timed
from benchmarks.remote.store import BUCKET, CHUNKS, MIB, SHARD, RemoteStore, running, shape_of

_BANDWIDTH = 40e6
_READS = 24
_READ = 4096


class Run:
    """One distance.

    ms : latency of a request, and of a new connection, in milliseconds.
    """

    def __init__(self, store: RemoteStore, directory: Path, ms: float) -> None:
        self.store, self.directory, self.ms = store, directory, ms
        self._mounts = 0

    def url(self, kind: str, name: str) -> str:
        if kind == "http":
            return f"{self.store.url}/{BUCKET}/{name}"
        return f"{'' if kind == 's3' else f'{kind}://::'}s3://{BUCKET}/{name}"

    def mounted(self, kind: str, name: str, *options: str) -> AbstractContextManager[Mount]:
        self._mounts += 1
        point = self.directory / f"mount-{self.ms:g}-{self._mounts}"
        return contenders.mount(self.url(kind, name), self.store.url, point, *options)

    def scans(self) -> Iterator[str]:
        yield (
            "| sequential read, MB/s (processor ms/MB) | zarrfs | TensorStore | zarr-python "
            "| bytes / stored |"
        )
        yield "|---|---|---|---|---|"
        for kind in ("s3", "http"):
            for name in ("plain", "sharded"):
                with self.mounted(kind, name) as mount:
                    self.store.reset()
                    ours = contenders.timed(
                        lambda: contenders.read_file(mount.path / "array.bin"), mount.pid
                    )
                    counts = self.store.counts()
                fetched = counts["sent"] / self.store.sizes[name]
                figures = [ours, *(self.apart(f"{peer}(KIND, URL, '{name}')", kind)
                                   for peer in ("tensorstore_read", "zarr_python"))]  # fmt: skip
                asked = sum(counts["requests"].values())
                yield (
                    f"| {kind}, {name} | {_shown(figures)} | {fetched:.3f} "
                    f"({asked} requests, {counts['most_in_flight']} in flight) |"
                )

    def at_random(self) -> Iterator[str]:
        yield "| read of 4 KiB at random, index known | median ms | round trips | requests a read |"
        yield "|---|---|---|---|"
        for kind in ("s3", "http"):
            for name in ("plain", "sharded"):
                with self.mounted(kind, name, "memory=64M") as mount:
                    path = mount.path / "array.bin"
                    warmed, places = _places(path.stat().st_size // MIB, CHUNKS[name])
                    # First somewhere in each shard: its index is known then.
                    contenders.read_at(path, warmed, _READ)
                    self.store.reset()
                    seconds = contenders.read_at(path, places, _READ)
                    asked = sum(self.store.counts()["requests"].values())
                median = float(np.median(seconds))
                trips = f"{median * 1e3 / self.ms:.2f}" if self.ms else "-"
                each = asked / len(places)
                yield f"| {kind}, {name} | {median * 1e3:.1f} | {trips} | {each:.1f} |"

    def listing(self) -> Iterator[str]:
        yield "| `ls -l` of 200 arrays | seconds | processor | round trips in time | requests |"
        yield "|---|---|---|---|---|"
        with self.mounted("s3", "many") as mount:
            for which in ("first", "again"):
                self.store.reset()

                def listed() -> int:
                    subprocess.run(["ls", "-l", mount.path], check=True, stdout=subprocess.DEVNULL)
                    return 0

                took = contenders.timed(listed, mount.pid)
                asked = sum(self.store.counts()["requests"].values())
                trips = f"{took.seconds * 1e3 / self.ms:.1f}" if self.ms else "-"
                yield f"| {which} | {took.seconds:.2f} | {took.processor:.2f} | {trips} | {asked} |"

    def writes(self) -> Iterator[str]:
        yield "| whole-array write, MB/s (processor ms/MB) | zarrfs | TensorStore | zarr-python |"
        yield "|---|---|---|---|"
        data = self.directory / "written.bin"
        content = data.read_bytes()

        def write(point: Path) -> int:
            with (point / "array.bin").open("r+b", buffering=0) as file:
                for at in range(0, len(content), MIB):
                    file.write(content[at : at + MIB])
            return len(content)

        with self.mounted("s3", "written", "rw") as mount:
            ours = contenders.timed(lambda: write(mount.path), mount.pid)
        peers = ("tensorstore_write", "zarr_python")
        calls = [f"{peer}(KIND, URL, 'written', {str(data)!r})" for peer in peers]
        yield f"| s3, plain | {_shown([ours, *(self.apart(call, 's3') for call in calls)])} |"

    def apart(self, call: str, kind: str) -> Timed:
        """What a library takes, in a process of its own."""
        program = (
            "from benchmarks.remote.contenders import *\n"
            f"KIND, URL = {kind!r}, {self.store.url!r}\n"
            f"took = timed(lambda: {call})\n"
            "print(took.seconds, took.processor, took.count)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
        )
        seconds, processor, count = done.stdout.split()
        return Timed(float(seconds), float(processor), int(count))


def _shown(figures: list[Timed]) -> str:
    return " | ".join(f"{figure.rate:.0f} ({figure.cost:.1f})" for figure in figures)


def _places(mib: int, chunks: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets in the file: one in each shard, and others in rows of chunks that nobody read before.

    A read crosses all chunks of a row along the last axis, as do those that the kernel reads ahead.
    """
    planes, rows, columns = shape_of(mib)
    plane, row = rows * columns * 2, columns * 2

    def offset(group: tuple[int, int]) -> int:
        return group[0] * chunks[0] * plane + group[1] * chunks[1] * row

    of_shards = {
        (z // chunks[0], y // chunks[1])
        for z in range(0, planes, SHARD[0])
        for y in range(0, rows, SHARD[1])
    }
    others = [
        (z, y)
        for z in range(-(-planes // chunks[0]))
        for y in range(rows // chunks[1])
        if (z, y) not in of_shards
    ]
    chosen = np.random.default_rng(2).permutation(len(others))[:_READS]
    warmed = [offset(group) for group in sorted(of_shards)]
    return np.array(warmed), np.array([offset(others[number]) for number in chosen])


TABLES: dict[str, Callable[[Run], Iterator[str]]] = {
    "scans": Run.scans,
    "random": Run.at_random,
    "listing": Run.listing,
    "writes": Run.writes,
    "reads": counted.reads,
    "walks": counted.walks,
    "kept": counted.kept,
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


if __name__ == "__main__":
    main()
