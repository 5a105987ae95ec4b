"""``python -m benchmarks``: measures, prints what it found, and keeps it."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from benchmarks.arrays import KINDS, Arrays
from benchmarks.bench import Bench, workplace
from benchmarks.measure import Limit, Outcome, compare
from benchmarks.report import line
from benchmarks.rows import ROWS
from benchmarks.scale import SCALES

_PEAK = Limit("at most", 150, 80, unit=" MiB")


def main() -> None:
    arguments = _arguments()
    scale = SCALES[arguments.scale]
    directory = arguments.directory.resolve()
    outcomes: list[Outcome] = []
    begun = time.monotonic()
    with workplace(directory) as work:
        bench = Bench(scale, Arrays(directory, scale), work, arguments.arrays)
        for row in ROWS:
            if arguments.rows and row.name not in arguments.rows:
                continue
            bench.row = row.name
            for comparison in row.comparisons(bench):
                outcome = compare(row.name, row.limit, comparison, scale)
                outcomes.append(outcome)
                print(line(outcome, row.limit), flush=True)
    print(f"{time.monotonic() - begun:.0f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in ROWS], help="only these")
    parser.add_argument(
        "--arrays", nargs="+", choices=KINDS, default=list(KINDS), help="sequential: only these"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(os.environ.get("ZARRFS_BENCH_DIR", "/var/tmp/zarrfs-bench")),
        help="where the arrays are kept (default: $ZARRFS_BENCH_DIR or /var/tmp/zarrfs-bench)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
