"""Copies of whole arrays beside other programs: ``make bench-copy``.

Each row runs zarrfs and its peers in turns, each as a process of its own from nothing, and prints
medians of the time, of the processor time of the process and its children, and of the most memory
that one of them has: its proportional set size, looked at five times a second. All encode with the
codec of the source; rechunker and Dask would choose LZ4. Files are synced before each run, so that
no run waits for what another one wrote. ``--peers`` names an interpreter
with rechunker, Dask and zarr 2, which rechunker needs; without it these peers are left out, and the
table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_MAKE = """
import sys, numcodecs, numpy as np, zarr
path, planes = sys.argv[1], int(sys.argv[2])
array = zarr.create_array(path, shape=(planes, 1024, 1024), chunks=(64, 128, 128), dtype="u2",
                          zarr_format=2, compressors=numcodecs.Zstd(level=1))
random = np.random.default_rng(0)
for first in range(0, planes, 64):
    some = random.integers(0, 60, (64, 1024, 1024)) + np.arange(1024)
    array[first : first + 64] = some.astype("u2")
"""
_TENSORSTORE = """
import sys, tensorstore as ts
source, target, planes = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = ts.Context({"cache_pool": {"total_bytes_limit": 1 << 28}})
one = ts.open({"driver": "zarr", "kvstore": "file://" + source}, context=context).result()
codecs = [{"name": "bytes", "configuration": {"endian": "little"}},
          {"name": "zstd", "configuration": {"level": 1}}]
shards = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [64, 128, 128],
           "codecs": codecs}}]
grid = {"name": "regular", "configuration": {"chunk_shape": [64, 512, 512]}}
other = ts.open({"driver": "zarr3", "kvstore": "file://" + target, "create": True,
                 "metadata": {"shape": [planes, 1024, 1024], "data_type": "uint16",
                              "chunk_grid": grid, "codecs": shards}}, context=context).result()
for first in range(0, planes, 64):
    for y in (0, 512):
        part = slice(first, first + 64), slice(y, y + 512)
        other[part].write(one[part]).result()
"""
_RECHUNKER = """
import sys, zarr, rechunker
source, target, temporary = sys.argv[1:4]
array = zarr.open(source, mode="r")
if __name__ == "__main__":
    plan = rechunker.rechunk(array, (8, 1024, 1024), "512MB", target, temp_store=temporary,
                             target_options={"compressor": array.compressor})
    from dask.distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        plan.execute()
"""
_DASK = """
import sys, dask.array, zarr
source, target = sys.argv[1:3]
if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c, Client(c):
        array = dask.array.from_zarr(source).rechunk((8, 1024, 1024))
        array.to_zarr(target, overwrite=True, compressor=zarr.open(source, mode="r").compressor)
"""
_CHECK = """
import os, sys, time, zarrfs
source, memory, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = zarrfs.SourceOptions(memory=memory)
def used(client):
    return sum(map(sum, client.run(lambda: os.times()[:2]).values())) + sum(os.times()[:2])
if __name__ == "__main__":
    from dask.distributed import Client, LocalCluster
    runs = {"zarrfs": [], "by two workers": []}
    with (LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0,
                       resources={"memory": memory}) as cluster, Client(cluster) as client):
        zarrfs.check(source, options=options, client=client)
        for _ in range(turns):
            for name, given in zip(runs, ({}, {"client": client})):
                before, begun = used(client), time.monotonic()
                zarrfs.check(source, options=options, **given)
                runs[name].append((time.monotonic() - begun, used(client) - before))
    for name, found in runs.items():
        seconds, processors = (sorted(each)[turns // 2] for each in zip(*found))
        print(f"  {name:28} {seconds:7.2f} s {processors:7.2f} s", file=sys.stderr)
"""


class Run(NamedTuple):
    """Seconds, seconds of processors, and the most MiB that one process has."""

    time: float
    processors: float
    memory: float


def measure(command: Sequence[str | Path]) -> Run:
    os.sync()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    memory = 0
    with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            memory = max(memory, *map(_memory, _processes(process.pid)))
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    took = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(took, used, memory / 1024)


def _processes(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in file.read_text().split():
                yield from _processes(int(child))


def _memory(pid: int) -> int:
    """KiB of a process; what it shares with others counts in part."""
    with suppress(OSError):
        found = re.search(
            r"^Pss: *(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE
        )
        return int(found[1]) if found else 0
    return 0


def row(folder: Path, programs: dict[str, Callable[[], list[str | Path]]], turns: int) -> None:
    """Print a row: each program in turn, its output removed before the next one."""
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for _ in range(turns):
        for name, command in programs.items():
            for path in folder.glob("out*"):
                shutil.rmtree(path)
            runs[name].append(measure(command()))
    for name, found in runs.items():
        seconds, processors, memory = (statistics.median(x) for x in zip(*found, strict=True))
        print(f"  {name:28} {seconds:7.2f} s {processors:7.2f} s {memory:7.0f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copy")
    parser.add_argument("--planes", type=int, default=256, help="of 2 MiB each; 2048 for 4 GiB")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--memory", default="512M", help="in M")
    parser.add_argument("--peers", help="interpreter with rechunker, dask and zarr 2")
    parser.add_argument("--folder", help="where arrays are written")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-copy-", dir=given.folder))
    source, out = folder / "source.zarr", folder / "out"
    zarrfs = [sys.executable, "-m", "zarrfs"]
    # As an installed package, zarrfs is compiled only once.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    memory = ["--memory", given.memory]
    try:
        make = [sys.executable, "-W", "ignore", "-c", _MAKE, str(source), str(given.planes)]
        subprocess.run(make, check=True)
        subprocess.run([*zarrfs, "copy", "-n", source, out], check=True, stdout=subprocess.DEVNULL)
        print(f"{given.planes * 2} MiB of uint16; time, processor time, memory of one process")

        print("rechunk (64, 128, 128) to (8, 1024, 1024)")
        rechunk = [*zarrfs, "copy", source, out, "--chunks", "8,1024,1024", *memory]
        programs: dict[str, Callable[[], list[str | Path]]] = {"zarrfs": lambda: rechunk}
        if given.peers:
            script = {"rechunker": _RECHUNKER, "dask rechunk": _DASK}
            for name, text in script.items():
                (file := folder / f"run_{name[:4]}.py").write_text(text)
                programs[name] = lambda file=file: [  # type: ignore[misc]
                    given.peers, "-W", "ignore", file, source, out, folder / "out-temporary",
                ]  # fmt: skip
        else:
            print("  rechunker and Dask are left out: --peers names no interpreter that has them")
        row(folder, programs, given.turns)

        print("v2 chunks to v3 shards of the same chunks")
        shards = ["--zarr-format", "3", "--chunks", "64,128,128", "--shards", "64,512,512"]
        (file := folder / "run_tensorstore.py").write_text(_TENSORSTORE)
        row(
            folder,
            {
                "zarrfs, passed on": lambda: [*zarrfs, "copy", source, out, *shards, *memory],
                "zarrfs, encoded anew": lambda: [
                    *zarrfs, "copy", source, out, *shards, "--codecs", "zstd:2", *memory,
                ],
                "TensorStore": lambda: [sys.executable, file, source, out, str(given.planes)],
            },
            given.turns,
        )  # fmt: skip

        print("the same chunks and codecs")
        row(
            folder,
            {
                "zarrfs": lambda: [*zarrfs, "copy", source, out, *memory],
                "cp -r": lambda: ["cp", "-r", source, out],
                "zarrfs, and sync": lambda: [
                    "sh", "-c", '"$@" && sync', "-", *zarrfs, "copy", source, out, *memory,
                ],
                "cp -r, and sync": lambda: [
                    "sh", "-c", '"$@" && sync', "-", "cp", "-r", source, out,
                ],
                "zarrfs, only planning": lambda: [*zarrfs, "copy", "-n", source, out, *memory],
            },
            given.turns,
        )  # fmt: skip

        print("check")
        row(
            folder,
            {
                "zarrfs": lambda: [*zarrfs, "check", source, *memory],
                "zarrfs --scheduler dask": lambda: [
                    *zarrfs, "check", source, *memory, "--scheduler", "dask",
                ],
            },
            given.turns,
        )  # fmt: skip
        print("check, without the start of the programs and of the cluster")
        (file := folder / "run_check.py").write_text(_CHECK)
        size = str(int(given.memory.rstrip("M")) << 20)
        subprocess.run([sys.executable, file, source, size, str(given.turns)], check=True)
        print(json.dumps({"processors": os.cpu_count(), "load": os.getloadavg()}))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
