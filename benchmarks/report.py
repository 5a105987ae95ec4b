"""What was found, as lines and as tables of Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.bench import Row
from benchmarks.figures import Figures, RowFigures, peak_of_all
from benchmarks.measuring.measure import Limit, Outcome

MEMORY_LIMIT = Limit("at most", 150, 80, unit=" MiB")

_BEGIN = "<!-- {}: written by make bench -->"
_END = "<!-- {}: end -->"


def line(outcome: Outcome, limit: Limit) -> str:
    """One outcome, for people who wait for it."""
    rates = ", ".join(
        f"{name} {_number(outcome.rate(name))} (±{(outcome.spread(name) - 1) * 50:.0f} %)"
        for name in outcome.seconds
    )
    verdict = "ok  " if limit.met(outcome.figure, limit.must) else "MISS"
    return (
        f"{verdict} {outcome.row:13} {outcome.label:24} {_figure(outcome.figure, limit):>8} "
        f"(must {_bound(limit, limit.must)})  {outcome.unit}: {rates}"
    )


def memory_line(figures: Figures) -> str:
    """The highest peak of memory, for the same people."""
    peak = peak_of_all(figures)
    if peak is None:
        return "no daemon's memory was measured"
    verdict = "ok  " if MEMORY_LIMIT.met(peak[1], MEMORY_LIMIT.must) else "MISS"
    return f"{verdict} memory beyond the budget: {peak[1]:.0f} MiB, in {peak[0]} (must ≤ 150 MiB)"


def page(figures: Figures, rows: Sequence[Row]) -> str:
    """The block of ``docs/performance.md``."""
    shown = [row for row in rows if row.name in figures]
    if not shown:
        return "Nothing has been measured yet.\n"
    parts = [_conditions([figures[row.name] for row in shown]), _table(figures, shown)]
    parts += [
        f"`{row.name}` could not be measured: {figures[row.name].error}\n"
        for row in shown
        if figures[row.name].error
    ]
    if "sequential" in figures:
        parts += [
            "![Cold sequential reads, MB/s](performance-sequential.svg)\n",
            _rates(figures["sequential"].outcomes),
        ]
    parts.append("![Every figure beside what it must reach](performance-ratios.svg)\n")
    return "\n".join(parts)


def replace_block(path: Path, name: str, block: str) -> None:
    """Writes ``block`` between the markers of that name, which must be there."""
    begin, end = _BEGIN.format(name), _END.format(name)
    text = path.read_text()
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{path} has no {begin} … {end}")
    inside = f"{block.strip()}\n\n" if block else ""
    path.write_text(f"{before}{begin}\n\n{inside}{end}{after}")


def _table(figures: Figures, rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        rounds = figures[row.name].scale["rounds"]
        for number, outcome in enumerate(figures[row.name].outcomes):
            fewer = len(outcome.seconds[outcome.subject])
            note = f"({fewer} of {rounds} rounds)" if fewer < rounds else ""
            what = row.what if number == 0 else ""
            against = row.against if number == 0 else ""
            lines.append(
                [
                    " ".join(part for part in (what, outcome.label, note) if part),
                    against,
                    _measured(outcome, outcome.subject),
                    _measured(outcome, outcome.peer),
                    *_judged(outcome.figure, row.limit),
                ]
            )
    peak = peak_of_all(figures)
    if peak is not None:
        name, figure = peak
        what = f"peak memory of the daemon in any of these (in {name})"
        lines.append([what, "its budget", "", "", *_judged(figure, MEMORY_LIMIT)])
    head = ["what", "against", "zarrfs", "peer", "figure", "must", "aim", ""]
    return _markdown(head, lines)


def _rates(outcomes: Sequence[Outcome]) -> str:
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.seconds))
    lines = [
        [outcome.label]
        + [_number(outcome.rate(name)) if name in outcome.seconds else "" for name in names]
        for outcome in outcomes
    ]
    return _markdown(["MB/s", *names], lines)


def _conditions(rows: Sequence[RowFigures]) -> str:
    machine, scale = rows[0].machine, rows[0].scale
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    days = sorted({row.machine["measured"][:10] for row in rows})
    # Nothing tells a noisy machine from a quiet one better.
    load = statistics.median(row.machine["load"] for row in rows)
    return (
        f"Measured {' to '.join(dict.fromkeys((days[0], days[-1])))} on {machine['cores']} cores "
        f"({machine['cpu']}), {machine['memory'] / (1 << 30):.0f} GiB of memory, load {load:g} "
        f"(median; the measurements themselves make about {machine['cores']}), Linux "
        f"{machine['kernel']}, libfuse {machine['libfuse']}, Python {machine['python']}; "
        f"{versions}. Arrays of {_size(scale)}, the images of "
        f"{' × '.join(map(str, scale['image']))} float32; medians of at least {scale['rounds']}.\n"
    )


def _size(scale: Mapping[str, Any]) -> str:
    depth, height, width = scale["volume"]
    mib = depth * height * width * 2 >> 20
    size = f"{mib >> 10} GiB" if mib % 1024 == 0 else f"{mib} MiB"
    return f"{size} ({depth} × {height} × {width})"


def _measured(outcome: Outcome, name: str) -> str:
    return f"{_number(outcome.rate(name))} {outcome.unit}"


def _judged(figure: float, limit: Limit) -> list[str]:
    verdict = "missed"
    if limit.met(figure, limit.must):
        verdict = "aim reached" if limit.aim and limit.met(figure, limit.aim) else "reached"
    aim = "" if limit.aim is None else _bound(limit, limit.aim)
    return [f"**{_figure(figure, limit)}**", _bound(limit, limit.must), aim, verdict]


def _bound(limit: Limit, value: float) -> str:
    return f"{'≥' if limit.kind == 'at least' else '≤'} {value:g}{limit.unit}"


def _figure(figure: float, limit: Limit) -> str:
    return f"{figure:.2f}{limit.unit}" if limit.unit == "×" else f"{figure:.0f}{limit.unit}"


def _number(value: float) -> str:
    """Three figures, grouped."""
    if value >= 100:
        digits = len(str(int(value))) - 3
        return f"{round(value / 10**digits) * 10**digits:,}".replace(
            ",", "\N{NARROW NO-BREAK SPACE}"
        )
    return f"{value:.3g}"


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
