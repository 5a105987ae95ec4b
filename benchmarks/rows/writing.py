"""Writing."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bench import PAGE, Bench, Comparisons, Row, dd, random_pages
from benchmarks.measuring.measure import Comparison, Limit


def _overwrite(bench: Bench) -> Comparisons:
    for kind in bench.chosen("a", "b", "c", "d", "f", "g", "e"):
        plain = bench.arrays.plain(kind)
        path = bench.arrays.copy(kind, "written")

        def zarrfs(path: Path = path, plain: Path = plain) -> float:
            with bench.zarrfs(path, "rw", *_journal(bench)) as mounted:
                return dd(plain, mounted.flat, "conv=notrunc,fsync")

        yield Comparison(
            f"({kind})",
            {
                "zarrfs": zarrfs,
                "TensorStore": bench.library(
                    "tensorstore.write_all", path=str(path), data=str(plain)
                ),
            },
            amount=bench.arrays.size(kind),
            unit="MB/s",
        )


def _random(bench: Bench) -> Comparisons:
    plain = bench.arrays.plain("e")
    path = bench.arrays.copy("e", "written")
    count = bench.scale.writes
    offsets = bench.offsets("writes", random_pages(bench.arrays.size("e"), count))
    library = bench.library(
        "tensorstore.write_at", path=str(path), offsets=str(offsets), size=PAGE, data=str(plain)
    )

    def zarrfs() -> float:
        with bench.zarrfs(path, "rw", *_journal(bench)) as mounted:
            return bench.access("pwrite", mounted.flat, offsets, PAGE, plain)

    yield Comparison(
        "(e)",
        {"zarrfs": zarrfs, "TensorStore": lambda: library() / count},
        unit="writes/s",
    )


def _journal(bench: Bench) -> tuple[str, ...]:
    return (f"journal={bench.directory / 'journal'}",)


ROWS = (
    Row(
        "overwrite",
        "sequential overwrite (`dd of=array.bin bs=1M`, then fsync)",
        "TensorStore in process",
        Limit("at least", 1.0, 1.3),
        _overwrite,
    ),
    Row(
        "random-writes",
        "random 4 KiB writes, then fsync",
        "TensorStore in one transaction",
        Limit("at least", 1.0, 2.0),
        _random,
    ),
)
