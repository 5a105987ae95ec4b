"""``python -m benchmarks.shapes``: measures arrays drawn from seeds, side by side."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench import workplace
from benchmarks.measuring import machine
from benchmarks.shapes import plot, report
from benchmarks.shapes.drawing import draw
from benchmarks.shapes.outcome import ShapeOutcome, measure
from benchmarks.shapes.rows import ROWS
from benchmarks.shapes.subject import Subject
from benchmarks.shapes.workshop import Workshop, verify_reading

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 1 where something could not be measured or bytes are wrong."""
    arguments = _arguments(words)
    outcomes: list[ShapeOutcome] = []
    failures: list[dict[str, Any]] = []
    conditions = {
        "machine": machine.describe(),
        "size": arguments.size,
        "turns": arguments.turns,
        "seeds": arguments.seeds,
    }
    begun = time.monotonic()
    print(report.HEADER, flush=True)
    parent: Path = (arguments.keep or arguments.directory).resolve()
    with workplace(parent) as work:
        workshop = Workshop(work)
        for seed in arguments.seeds:
            with _subject(seed, arguments.size, parent, keep=arguments.keep is not None) as subject:
                for name in ("exactness", *arguments.rows):
                    workshop.row = name
                    try:
                        outcome = _outcome(name, workshop, subject, arguments.turns)
                    except Exception as failure:  # noqa: BLE001 (reported; the next is another)
                        reason = f"{type(failure).__name__}: {failure}"
                        failures.append({"seed": seed, "row": name, "reason": reason})
                        print(f"FAIL {seed} {name}: {reason}", file=sys.stderr, flush=True)
                        continue
                    if outcome is not None:
                        outcomes.append(outcome)
                        print(report.line(outcome), flush=True)
            if arguments.json is not None:
                report.save(arguments.json, conditions, outcomes, failures)
    print(*report.summary(outcomes), sep="\n")
    print(f"{len(failures)} failures; {time.monotonic() - begun:.0f} s in all")
    if arguments.plot is not None and outcomes:
        arguments.plot.write_text(plot.sorted_ratios(outcomes))
    return int(bool(failures))


def _outcome(name: str, workshop: Workshop, subject: Subject, turns: int) -> ShapeOutcome | None:
    if name == "exactness":
        verify_reading(workshop, subject)
        return None
    task = ROWS[name].prepare(workshop, subject)
    if task is None:
        return None
    return measure(name, subject.geometry, task, turns, subject.stored_bytes)


@contextmanager
def _subject(seed: int, size: int, parent: Path, *, keep: bool) -> Iterator[Subject]:
    """The array of a seed; gone afterwards unless it is to be kept."""
    subject = Subject.build(draw(seed, size), parent)
    try:
        yield subject
    finally:
        for written in subject.directory.glob("written-*"):
            shutil.rmtree(written)
        if not keep:
            shutil.rmtree(subject.directory)


def seeds(text: str) -> list[int]:
    """``0:40`` (which ends before 40), ``3,7`` or both."""
    found: list[int] = []
    for part in text.split(","):
        first, colon, end = part.partition(":")
        found += range(int(first or 0), int(end)) if colon else [int(part)]
    if not found:
        raise ValueError(text)
    return found


def size(text: str) -> int:
    """Bytes, with a unit K, M or G."""
    matched = re.fullmatch(r"(\d+)([KMG]?)", text)
    if matched is None:
        raise ValueError(text)
    return int(matched[1]) * _UNITS[matched[2]]


def rows(text: str) -> list[str]:
    """Names of rows with commas between."""
    found = text.split(",")
    if not set(found) <= set(ROWS):
        raise ValueError(text)
    return found


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shapes",
        description="Measures arrays drawn from seeds through a mount and by TensorStore. Rows: "
        + "; ".join(f"{row.name}: {row.what}" for row in ROWS.values()),
    )
    parser.add_argument("--seeds", type=seeds, default="0:40", help="0:40, or 3,7 (default: 0:40)")
    parser.add_argument(
        "--rows",
        type=rows,
        default=list(ROWS),
        help=f"only these, with commas between: {','.join(ROWS)}",
    )
    parser.add_argument("--size", type=size, default="256M", help="of an array (default: 256M)")
    parser.add_argument("--turns", type=int, default=3, help="of each contender (default: 3)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--plot", type=Path, help="write a chart to this SVG file")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the arrays in DIR, or use those kept there"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(os.environ.get("ZARRFS_BENCH_DIR", "/var/tmp/zarrfs-bench")),
        help="where arrays are while they are measured (default: $ZARRFS_BENCH_DIR or "
        "/var/tmp/zarrfs-bench)",
    )
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
