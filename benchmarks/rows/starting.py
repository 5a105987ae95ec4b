"""Until there is something to read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.arrays import KINDS
from benchmarks.bench import Bench, Comparisons, Row
from benchmarks.measuring import page_cache
from benchmarks.measuring.measure import Comparison, Limit


def _chunk_file(bench: Bench) -> Comparisons:
    for kind in bench.chosen("b", "e"):
        path = bench.arrays.path(kind)
        chunk = KINDS[kind].inner or KINDS[kind].chunk
        grid = [n // c for n, c in zip(bench.arrays.shape(kind), chunk, strict=True)]
        count = min(bench.scale.chunk_files, int(np.prod(grid)))
        numbers = np.random.default_rng(0).permutation(int(np.prod(grid)))[:count]
        places = np.stack(np.unravel_index(numbers, grid), axis=1).tolist()

        def zarrfs(path: Path = path, places: list[list[int]] = places) -> float:
            with bench.zarrfs(path) as mounted:
                page_cache.drop_all(path)
                begun = time.perf_counter()
                for indices in places:
                    mounted.chunk_file(indices).read_bytes()
                return time.perf_counter() - begun

        yield Comparison(
            f"({kind})",
            {
                "zarrfs": zarrfs,
                "zarr-python": bench.library(
                    "zarr_python.read_chunks", path, path=str(path), chunks=places
                ),
            },
            peer="zarr-python",
            amount=count,
            unit="ms",
        )


def _first_byte(bench: Bench) -> Comparisons:
    path = bench.arrays.path("b")

    def zarrfs() -> float:
        begun = time.perf_counter()
        with bench.zarrfs(path) as mounted, mounted.flat.open("rb", buffering=0) as file:
            file.read(1)
            return time.perf_counter() - begun

    def imported() -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import zarr"], check=True)
        return time.perf_counter() - begun

    # Both from the page cache, whoever is first.
    zarrfs(), imported()
    yield Comparison(
        "(b)",
        {"zarrfs": zarrfs, "import zarr": imported},
        peer="import zarr",
        unit="ms",
    )


def _many_chunks(bench: Bench) -> Comparisons:
    def visit(grid: tuple[int, ...]) -> Callable[[], float]:
        path = bench.arrays.empty(f"chunks{np.prod(grid)}", grid)

        def measure() -> float:
            begun = time.perf_counter()
            with bench.zarrfs(path) as mounted:
                subprocess.run(
                    ["ls", mounted.path / "chunks/0"], check=True, stdout=subprocess.DEVNULL
                )
                last = mounted.chunk_file([n - 1 for n in grid])
                os.stat(last)
                os.stat(mounted.flat)
                for file in mounted.flat, last:
                    with file.open("rb", buffering=0) as opened:
                        opened.read(1)
                return time.perf_counter() - begun

        return measure

    yield Comparison(
        "",
        {"10⁹ chunks": visit((1000, 1000, 1000)), "10 chunks": visit((10, 1, 1))},
        subject="10⁹ chunks",
        peer="10 chunks",
        unit="ms",
    )


ROWS = (
    Row(
        "chunk-file",
        "reading one chunk file, cold",
        "zarr-python reading that chunk",
        Limit("at least", 1.0),
        _chunk_file,
    ),
    Row(
        "first-byte",
        "mount command to first byte",
        '`python -c "import zarr"`',
        Limit("at most", 1.0, 0.5),
        _first_byte,
    ),
    Row(
        "many-chunks",
        "array of 10⁹ chunks: mount, `ls chunks/0`, stat, open",
        "array of 10 chunks",
        Limit("at most", 1.2),
        _many_chunks,
    ),
)
