"""Reading 4 KiB here and there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bench import PAGE, Bench, Comparisons, Row, random_pages
from benchmarks.measuring import page_cache
from benchmarks.measuring.measure import Comparison, Limit
from benchmarks.mounts import Mounted

# What zarrfs may take unless it is told otherwise, for the libraries too.
_CACHE = 1 << 30
_LIBRARY_READS = "tensorstore.read_at"


def _hits(bench: Bench) -> Comparisons:
    for kind in bench.chosen("b", "f"):
        region = min(bench.scale.region, bench.arrays.size(kind))
        offsets = bench.offsets("hits", random_pages(region, bench.scale.reads))
        with bench.zarrfs(bench.arrays.path(kind)) as mounted, bench.memfs(region) as memory:
            # In no order, or it would be taken for a scan, which keeps no chunks. Every
            # 64 KiB, which is somewhere in each chunk.
            chunks = random_pages(region // 16, region // 16 // PAGE) * 16
            warm = bench.offsets("warm", chunks)
            bench.access("pread", mounted.flat, warm)

            def reads(of: Mounted, offsets: Path = offsets) -> float:
                page_cache.drop_file(of.flat)
                return bench.access("pread", of.flat, offsets)

            yield Comparison(
                f"({kind})",
                {"zarrfs": lambda: reads(mounted), "C": lambda: reads(memory)},
                peer="C",
                unit="reads/s",
            )


def _rate(bench: Bench) -> Comparisons:
    path = bench.arrays.path("f")
    region = min(256 << 20, bench.arrays.size("f"))
    seconds = bench.scale.seconds
    pages = np.random.default_rng(0).integers(0, region // PAGE, 1 << 20)
    offsets = bench.offsets("rate", pages * PAGE)

    def zarrfs() -> float:
        with bench.zarrfs(path) as mounted:
            page_cache.drop_all(path)
            return bench.access("pread", mounted.flat, offsets, PAGE, seconds)

    def memory(*, direct: bool) -> float:
        with bench.memfs(region, direct=direct) as mounted:
            return bench.access("pread", mounted.flat, offsets, PAGE, seconds)

    yield Comparison(
        "(f)",
        {
            "zarrfs": zarrfs,
            "C": lambda: memory(direct=True),
            "C, page cache": lambda: memory(direct=False),
        },
        peer="C",
        unit="reads/s",
    )


def _cold(bench: Bench) -> Comparisons:
    for kind in bench.chosen("b", "e"):
        path = bench.arrays.path(kind)
        # Half of it, so that nobody's cache is too small for what it has decoded.
        region = bench.arrays.size(kind) // 2
        offsets = bench.offsets("cold", random_pages(region, bench.scale.cold_reads))
        library = bench.library(
            _LIBRARY_READS, path, path=str(path), offsets=str(offsets), size=PAGE, cache=_CACHE
        )
        for mode in "pread", "mmap":

            def zarrfs(mode: str = mode, path: Path = path, offsets: Path = offsets) -> float:
                with bench.zarrfs(path) as mounted:
                    page_cache.drop_all(path)
                    return bench.access(mode, mounted.flat, offsets)

            def tensorstore(measure: Callable[[], float] = library) -> float:
                return measure() / bench.scale.cold_reads

            yield Comparison(
                f"({kind}) {mode}",
                {"zarrfs": zarrfs, "TensorStore": tensorstore},
                unit="reads/s",
            )


ROWS = (
    Row(
        "hits",
        "random 4 KiB `pread`, decoded, page cache cold",
        "a memory file system in C",
        Limit("at most", 5.0, 3.5),
        _hits,
    ),
    Row(
        "rate",
        "random 4 KiB `pread` for 5 s over 256 MiB of rows",
        "the same file system, each read",
        Limit("at least", 3.0, 8.0),
        _rate,
    ),
    Row(
        "cold",
        "random 4 KiB, cold",
        "TensorStore in process, cache enabled",
        Limit("at least", 1.0, 2.0),
        _cold,
    ),
)
