"""What the turns of one row of one shape came to."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.measuring.measure import in_unit
from benchmarks.shapes.geometry import Geometry
from benchmarks.shapes.rows import PASSAGE, PEER, SUBJECT, Task
from benchmarks.shapes.workshop import Turn


@dataclass(frozen=True, slots=True)
class ShapeOutcome:
    """The turns of each contender, in their order.

    missing : why a contender has none, as "zarrs": "it cannot read this".
    """

    row: str
    geometry: Geometry
    turns: Mapping[str, Sequence[Turn]]
    amount: float
    unit: str
    stored_bytes: int
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times as fast as TensorStore, by medians."""
        return self.seconds(PEER) / self.seconds(SUBJECT)

    @property
    def processor_ratio(self) -> float:
        """TensorStore's processor time over the daemon's: more is better, as of `ratio`."""
        return self.processor(PEER) / self.processor(SUBJECT)

    @property
    def bound(self) -> float | None:
        """The ratio of a mount that works as TensorStore does and keeps all processors busy.

        The rest of its processor time is that of a file system in C which has the bytes in memory,
        and of the program that reads or writes them. None: that was not measured.
        """
        if PASSAGE not in self.turns:
            return None
        least = (self.processor(PEER) + self.processor(PASSAGE)) / (os.cpu_count() or 1)
        return self.seconds(PEER) / least

    @property
    def fetched(self) -> float:
        """How many times the daemon read each stored byte."""
        return self._median(SUBJECT, lambda turn: turn.fetched) / self.stored_bytes

    @property
    def decoded(self) -> float:
        """How many times it decoded each byte of a chunk, also of those beyond the array."""
        return self._median(SUBJECT, lambda turn: turn.decoded) / self.geometry.decoded_bytes

    def seconds(self, contender: str) -> float:
        return self._median(contender, lambda turn: turn.seconds)

    def processor(self, contender: str) -> float:
        return self._median(contender, lambda turn: turn.processor)

    def rate(self, contender: str) -> float:
        return in_unit(self.seconds(contender), self.amount, self.unit)

    def _median(self, contender: str, of: Callable[[Turn], float]) -> float:
        return statistics.median(map(of, self.turns[contender]))


def measure(
    row: str, geometry: Geometry, task: Task, turns: int, stored_bytes: int
) -> ShapeOutcome:
    """Has the contenders take turns; each is first as often as others are."""
    taken: dict[str, list[Turn]] = {}
    missing: dict[str, str] = {}
    for number in range(turns):
        names = list(task.contenders)
        for name in names if number % 2 == 0 else reversed(names):
            judged = name in (SUBJECT, PEER)
            if name in missing or (number > 0 and not judged):
                continue
            try:
                turn = task.contenders[name](number)
            except RuntimeError as failure:
                if judged:
                    raise
                missing[name] = str(failure)
            else:
                taken.setdefault(name, []).append(turn)
    task.check()
    return ShapeOutcome(row, geometry, taken, task.amount, task.unit, stored_bytes, missing)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Ratios over all shapes of a row, least first."""

    ratios: Sequence[float]

    @classmethod
    def of(cls, ratios: Iterable[float]) -> Distribution:
        return cls(sorted(ratios))

    @property
    def statistics(self) -> dict[str, float]:
        tenth = self.ratios[len(self.ratios) // 10]
        return {
            "least": self.ratios[0],
            "10th percentile": tenth,
            "median": statistics.median(self.ratios),
        }

    @property
    def below(self) -> int:
        """How many shapes are slower than with TensorStore."""
        return sum(ratio < 1 for ratio in self.ratios)
