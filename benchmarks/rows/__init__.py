"""The rows of the table, in their order."""

from __future__ import annotations

from benchmarks.bench import Row
from benchmarks.rows import at_random, planes, scans, starting, writing

ROWS: tuple[Row, ...] = (
    *scans.ROWS,
    *at_random.ROWS,
    *planes.ROWS,
    *writing.ROWS,
    *starting.ROWS,
)
