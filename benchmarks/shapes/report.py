"""Lines for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.shapes.outcome import Distribution, ShapeOutcome
from benchmarks.shapes.rows import ORIENTATION, PEER, ROWS, SUBJECT

HEADER = (
    f"{'seed':>4} {'row':12} {'ratio':>6} {'zarrfs':>8} {'peer':>8} {'':7} "
    f"{'CPU s':>6} {'peer':>6} {'ratio':>6} {'fetched':>8} {'decoded':>8}  geometry"
)


def line(outcome: ShapeOutcome) -> str:
    """One row of one shape.

    The second ratio is that of processor time; "fetched" and "decoded" say how many times each
    stored byte was read, and each byte decoded.
    """
    text = (
        f"{outcome.geometry.seed:4} {outcome.row:12} {outcome.ratio:5.2f}× "
        f"{_number(outcome.rate(SUBJECT)):>8} {_number(outcome.rate(PEER)):>8} {outcome.unit:7} "
        f"{outcome.processor(SUBJECT):6.2f} {outcome.processor(PEER):6.2f} "
        f"{outcome.processor_ratio:5.2f}× {outcome.fetched:7.2f}× {outcome.decoded:7.2f}×  "
        f"{outcome.geometry}"
    )
    if ORIENTATION in outcome.turns:
        text += f"; {ORIENTATION} {_number(outcome.rate(ORIENTATION))}"
    return text


def summary(outcomes: Sequence[ShapeOutcome]) -> Iterator[str]:
    """The distribution of each row, beside what it must reach over 40 shapes.

    "at most" is that of `ShapeOutcome.bound`.
    """
    for name, found in by_row(outcomes).items():
        for what, must, ratios in (
            ("", ROWS[name].must, [outcome.ratio for outcome in found]),
            (" (processor time)", {}, [outcome.processor_ratio for outcome in found]),
            (" (through FUSE, at most)", {}, [o.bound for o in found if o.bound is not None]),
        ):
            if not ratios:
                continue
            spread = Distribution.of(ratios)
            figures = ", ".join(
                f"{statistic} {figure:.2f}×" + _verdict(figure, must.get(statistic))
                for statistic, figure in spread.statistics.items()
            )
            below = f"{spread.below} of {len(ratios)} below 1"
            yield f"{name + what:37} {figures}; {below}"
        if decoded := max(outcome.decoded for outcome in found):
            fetched = max(outcome.fetched for outcome in found)
            yield f"{name:37} at most: each byte fetched {fetched:.2f}×, decoded {decoded:.2f}×"


def by_row(outcomes: Sequence[ShapeOutcome]) -> dict[str, list[ShapeOutcome]]:
    """Of the rows that were measured, in their order."""
    rows = {name: [found for found in outcomes if found.row == name] for name in ROWS}
    return {name: found for name, found in rows.items() if found}


def save(
    path: Path, conditions: Mapping[str, Any], outcomes: Sequence[ShapeOutcome], failures: Any
) -> None:
    """All that was measured.

    conditions : machine and arguments.
    failures : seed, row and reason of what could not be measured.
    """
    document = {
        **conditions,
        "distribution": {
            name: Distribution.of(outcome.ratio for outcome in found).statistics
            for name, found in by_row(outcomes).items()
        },
        "failures": failures,
        "shapes": [
            {
                "seed": outcome.geometry.seed,
                "row": outcome.row,
                "ratio": outcome.ratio,
                "processor_ratio": outcome.processor_ratio,
                "bound": outcome.bound,
                "rates": {name: outcome.rate(name) for name in outcome.turns},
                "processor": {name: outcome.processor(name) for name in outcome.turns},
                "fetched": outcome.fetched,
                "decoded": outcome.decoded,
                "short": str(outcome.geometry),
                **asdict(outcome),
            }
            for outcome in outcomes
        ],
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _verdict(figure: float, must: float | None) -> str:
    if must is None:
        return ""
    return f" (must {must:g}: {'ok' if figure >= must else 'MISS'})"


def _number(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}"
