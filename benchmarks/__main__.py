"""``python -m benchmarks``: measures, prints what it found, and with --write keeps it."""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from benchmarks import plots, report
from benchmarks.arrays import KINDS, Arrays
from benchmarks.bench import Bench, Row, workplace
from benchmarks.figures import Figures, RowFigures, load, save
from benchmarks.measuring import machine
from benchmarks.measuring.measure import Outcome, compare
from benchmarks.rows import ROWS
from benchmarks.scale import SCALES, Scale

_ROOT = Path(__file__).parent.parent


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 1 where something could not be measured; a figure that misses is none."""
    arguments = _arguments(words)
    root: Path = arguments.root
    kept = root / "docs/performance.json"
    figures = load(kept) if arguments.write or arguments.render else {}
    # As pip has done with the peers when it installed them.
    compileall.compile_dir(root / "zarrfs", quiet=2)
    measured: dict[str, RowFigures] = {}
    if not arguments.render:
        rows = [row for row in ROWS if not arguments.rows or row.name in arguments.rows]
        begun = time.monotonic()
        measured = measure(rows, SCALES[arguments.scale], arguments.directory, arguments.arrays)
        print(report.memory_line(measured))
        print(f"{time.monotonic() - begun:.0f} s in all")
    if arguments.write or arguments.render:
        # Rows that were not measured now stay as they are, with where and when they were.
        merged = {row.name: {**figures, **measured}.get(row.name) for row in ROWS}
        write(root, {name: row for name, row in merged.items() if row is not None})
    return int(any(row.error for row in measured.values()))


def measure(
    rows: Sequence[Row], scale: Scale, directory: Path, kinds: Sequence[str]
) -> dict[str, RowFigures]:
    """The figures of each row; one that cannot be measured does not end the others."""
    found: dict[str, RowFigures] = {}
    with workplace(directory.resolve()) as work:
        bench = Bench(scale, Arrays(directory.resolve(), scale), work, kinds)
        for row in rows:
            bench.row = row.name
            bench.peaks.clear()
            conditions = machine.describe()
            outcomes: list[Outcome] = []
            error = ""
            try:
                # Closed even where it is not gone through: it may have mounted.
                with closing(row.comparisons(bench)) as comparisons:
                    for comparison in comparisons:
                        outcomes.append(compare(row.name, row.limit, comparison, scale))
                        print(report.line(outcomes[-1], row.limit), flush=True)
            except Exception as failure:  # noqa: BLE001 (reported; the next row is another)
                error = f"{type(failure).__name__}: {failure}"
                print(f"FAIL {row.name}: {error}", file=sys.stderr, flush=True)
            peak = max((peak.highest - peak.budget for peak in bench.peaks), default=None)
            found[row.name] = RowFigures(conditions, asdict(scale), outcomes, peak, error)
    return found


def write(root: Path, figures: Figures) -> None:
    """The raw figures, the blocks of the pages, and the charts."""
    docs = root / "docs"
    save(docs / "performance.json", figures)
    report.replace_block(docs / "performance.md", "figures", report.page(figures, ROWS))
    if figures:
        (docs / "performance-ratios.svg").write_text(plots.ratios(figures, ROWS))
    if "sequential" in figures:
        sequential = plots.rates(figures["sequential"].outcomes)
        (docs / "performance-sequential.svg").write_text(sequential)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--rows", nargs="+", choices=[row.name for row in ROWS], help="only these")
    parser.add_argument(
        "--arrays",
        nargs="+",
        choices=KINDS,
        default=list(KINDS),
        help="only these of a row",
    )
    parser.add_argument("--write", action="store_true", help="write docs/performance.*")
    parser.add_argument("--render", action="store_true", help="the same from the kept figures")
    parser.add_argument("--root", type=Path, default=_ROOT, help="where docs/ is")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(os.environ.get("ZARRFS_BENCH_DIR", "/var/tmp/zarrfs-bench")),
        help="where the arrays are kept (default: $ZARRFS_BENCH_DIR or /var/tmp/zarrfs-bench)",
    )
    arguments = parser.parse_args(words)
    if arguments.write and arguments.arrays != list(KINDS):
        parser.error("--write needs all arrays")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
