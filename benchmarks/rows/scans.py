"""Reading ``array.bin`` from its beginning to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.arrays import KINDS
from benchmarks.bench import Bench, Comparisons, Row, dd
from benchmarks.measuring import page_cache
from benchmarks.measuring.measure import Comparison, Limit
from benchmarks.scale import MIB


def _sequential(bench: Bench) -> Comparisons:
    for kind in bench.kinds:
        path = bench.arrays.path(kind)

        def zarrfs(path: Path = path) -> float:
            with bench.zarrfs(path) as mounted:
                page_cache.drop_all(path)
                return dd(mounted.flat)

        there = str(path)
        yield Comparison(
            f"({kind}) {KINDS[kind].title}",
            {
                "zarrfs": zarrfs,
                "TensorStore": bench.library("tensorstore.read_all", path, path=there),
                "zarrs": bench.library("zarr_python.read_all", path, path=there, rust=True),
                "zarr-python": bench.library("zarr_python.read_all", path, path=there),
            },
            amount=bench.arrays.size(kind),
            unit="MB/s",
        )


def _warm(bench: Bench) -> Comparisons:
    plain, size = bench.arrays.plain("b"), bench.arrays.size("b")
    with bench.zarrfs(bench.arrays.path("b")) as mounted, bench.memfs(size) as memory:
        for file in (mounted.flat, memory.flat, plain):
            dd(file)
        yield Comparison(
            "(b)",
            {
                "zarrfs": lambda: dd(mounted.flat),
                "plain file": lambda: dd(plain),
                "C": lambda: dd(memory.flat),
            },
            peer="plain file",
            amount=size,
            unit="MB/s",
        )


def _heights(bench: Bench) -> Comparisons:
    path = bench.arrays.path("b")
    row = bench.arrays.size("b") // bench.arrays.shape("b")[0]

    def rows(count: int) -> Callable[[], float]:
        # Memory of its own for each call, as a program has that asks for so many rows.
        def measure() -> float:
            with bench.zarrfs(path) as mounted:
                page_cache.drop_all(path)
                begun = time.perf_counter()
                buffer = bytearray(count * row)
                with mounted.flat.open("rb", buffering=0) as file:
                    while file.readinto(buffer):
                        pass
                return time.perf_counter() - begun

        return measure

    yield Comparison(
        "(b)",
        {"6 rows": rows(6), "256 rows": rows(256)},
        subject="6 rows",
        peer="256 rows",
        amount=bench.arrays.size("b"),
        unit="MB/s",
    )


def _memory(bench: Bench) -> Comparisons:
    path = bench.arrays.path("b")
    slab = bench.arrays.size("b") // bench.arrays.shape("b")[0] * 64

    def with_budget(size: int) -> Callable[[], float]:
        def measure() -> float:
            with bench.zarrfs(path, f"memory={size}") as mounted:
                page_cache.drop_all(path)
                return dd(mounted.flat)

        return measure

    yield Comparison(
        "(b)",
        {
            "half a slab": with_budget(max(slab // 2, 16 * MIB)),
            "eight slabs": with_budget(max(slab * 8, 16 * MIB)),
        },
        subject="half a slab",
        peer="eight slabs",
        amount=bench.arrays.size("b"),
        unit="MB/s",
    )


def _readers(bench: Bench) -> Comparisons:
    path = bench.arrays.path("b")
    size = bench.arrays.size("b")
    chunks = tuple(
        -(-n // c) for n, c in zip(bench.arrays.shape("b"), KINDS["b"].chunk, strict=True)
    )
    names = [
        (i, j, k) for i in range(chunks[0]) for j in range(chunks[1]) for k in range(chunks[2])
    ]

    # A number that four readers can share.
    some = names[: max(4, len(names) // 8 * 4)]

    def scan(readers: int) -> Callable[[], float]:
        part = size // MIB // readers

        def measure() -> float:
            with bench.zarrfs(path) as mounted:
                page_cache.drop_all(path)
                return _at_once(
                    partial(dd, mounted.flat, "/dev/null", f"skip={i * part}", f"count={part}")
                    for i in range(readers)
                )

        return measure

    def files(readers: int) -> Callable[[], float]:
        part = len(some) // readers

        def measure() -> float:
            with bench.zarrfs(path) as mounted:
                page_cache.drop_all(path)
                return _at_once(
                    partial(_read, [mounted.chunk_file(name) for name in some[i * part :][:part]])
                    for i in range(readers)
                )

        return measure

    for label, reading, amount in (
        ("(b) array.bin", scan, size),
        ("(b) chunk files", files, size * len(some) / len(names)),
    ):
        yield Comparison(
            label,
            {"4 readers": reading(4), "1 reader": reading(1)},
            subject="4 readers",
            peer="1 reader",
            amount=amount,
            unit="MB/s",
        )


def _read(paths: list[Path]) -> None:
    for path in paths:
        path.read_bytes()


def _at_once(calls: Iterable[Callable[[], object]]) -> float:
    """Seconds until all have returned."""
    with ThreadPoolExecutor() as threads:
        begun = time.perf_counter()
        for done in [threads.submit(call) for call in calls]:
            done.result()
        return time.perf_counter() - begun


ROWS = (
    Row(
        "sequential",
        "cold sequential read of `array.bin` (`dd bs=1M`)",
        "TensorStore in process",
        Limit("at least", 1.0, 1.5),
        _sequential,
    ),
    Row(
        "warm",
        "the same, read again",
        "a plain file in the page cache",
        Limit("at least", 0.9, 1.0),
        _warm,
    ),
    Row(
        "heights",
        "C-order read in slabs of 6 rows",
        "in slabs of 256 rows",
        Limit("at most", 1.2, 1.0),
        _heights,
    ),
    Row(
        "memory",
        "sequential read, slab twice the cache budget",
        "slab fits",
        Limit("at most", 2.5, 1.3),
        _memory,
    ),
    Row(
        "readers",
        "4 readers at once, different regions",
        "1 reader",
        Limit("at least", 1.5, 1.9),
        _readers,
    ),
)
