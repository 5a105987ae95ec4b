"""What was measured, as it is kept: ``docs/performance.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.measure import Outcome

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class RowFigures:
    """One row of one run.

    machine : as `machine.describe` says.
    scale : the run's `Scale` as a mapping.
    peak : the most memory of a daemon beyond its budget, bytes; None where none was measured.
    error : why there are not all outcomes, or empty.
    """

    machine: Mapping[str, Any]
    scale: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    peak: int | None = None
    error: str = ""


Figures = Mapping[str, RowFigures]


def load(path: Path) -> dict[str, RowFigures]:
    """By the names of rows; empty where nothing is kept yet."""
    if not path.exists():
        return {}
    return {
        name: RowFigures(**{**row, "outcomes": [Outcome(**told) for told in row["outcomes"]]})
        for name, row in json.loads(path.read_text()).items()
    }


def save(path: Path, figures: Figures) -> None:
    document = {name: asdict(row) for name, row in figures.items()}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def peak_of_all(figures: Figures) -> tuple[str, float] | None:
    """The row with the highest peak beyond its budget, and that peak in MiB."""
    peaks = [(row.peak / MIB, name) for name, row in figures.items() if row.peak is not None]
    if not peaks:
        return None
    peak, name = max(peaks)
    return name, peak
