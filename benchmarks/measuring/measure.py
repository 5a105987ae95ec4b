"""Contenders in turn, medians, and whether a figure reaches what it must."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.scale import Scale

Measure = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a row asks for: a ratio of times, or MiB.

    at_least : the subject must be so many times as fast as the peer; else it may take at
        most so many times as long (or use at most so much).
    """

    kind: Literal["at least", "at most"]
    must: float
    aim: float | None = None
    unit: str = "×"

    def met(self, figure: float, target: float | None) -> bool:
        if target is None:
            return True
        return figure >= target if self.kind == "at least" else figure <= target


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of a row: contenders measured in turn.

    label : what distinguishes it within its row, as the array.
    contenders : a function for each that measures once, in seconds per ``amount``.
    subject, peer : which of them make the ratio; others are for orientation.
    amount, unit : what the seconds are for: bytes of "MB/s", a number of "reads/s", or 1
        of "s".
    """

    label: str
    contenders: Mapping[str, Measure]
    subject: str = "zarrfs"
    peer: str = "TensorStore"
    amount: float = 1.0
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a comparison came to.

    seconds : of each contender, in the order they were measured in.
    figure : the ratio of medians (or MiB) that the limit is about.
    """

    row: str
    label: str
    subject: str
    peer: str
    figure: float
    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    amount: float = 1.0
    unit: str = "s"

    def rate(self, contender: str) -> float:
        """The median in ``unit``."""
        return in_unit(statistics.median(self.seconds[contender]), self.amount, self.unit)

    def spread(self, contender: str) -> float:
        """The longest over the shortest time."""
        times = self.seconds[contender]
        return max(times) / min(times)


def in_unit(seconds: float, amount: float, unit: str) -> float:
    """Seconds per ``amount`` as the figure that people read."""
    match unit:
        case "MB/s":
            return amount / seconds / 1e6
        case "ms":
            return seconds / amount * 1e3
        case "s":
            return seconds / amount
        case _:
            return amount / seconds


def compare(row: str, limit: Limit, comparison: Comparison, scale: Scale) -> Outcome:
    """Measures all contenders in turn, several times."""
    seconds: dict[str, list[float]] = {name: [] for name in comparison.contenders}
    spent = dict.fromkeys(seconds, 0.0)
    judged = {comparison.subject, comparison.peer}
    for number in range(max(scale.rounds, scale.most_rounds)):
        so_far = sum(spent.values())
        if so_far > scale.patience or (number >= scale.rounds and so_far > scale.brief):
            break
        for name, measure in comparison.contenders.items():
            if name not in judged and (
                number >= scale.orientation_rounds
                or (number > 0 and spent[name] > scale.orientation_seconds)
            ):
                continue
            begun = time.perf_counter()
            seconds[name].append(measure())
            spent[name] += time.perf_counter() - begun
    seconds = {name: times for name, times in seconds.items() if times}
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ours, theirs = medians[comparison.subject], medians[comparison.peer]
    return Outcome(
        row=row,
        label=comparison.label,
        subject=comparison.subject,
        peer=comparison.peer,
        figure=theirs / ours if limit.kind == "at least" else ours / theirs,
        seconds=seconds,
        amount=comparison.amount,
        unit=comparison.unit,
    )
