"""Few combinations that hold every pair of choices."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

from tests.soak import EXHAUSTIVE

Row = dict[str, Any]


def pairwise(
    factors: Mapping[str, Sequence[Any]], possible: Callable[[Row], bool], seed: int = 0
) -> Iterator[Row]:
    """Rows of one choice per factor, until every possible pair of choices was in one.

    Choices must be hashable. Greedy: each row starts from a pair not seen yet, and is
    the best of a few random ones that hold it.
    """
    random = Random(seed)
    missing = {
        ((a, x), (b, y)): None
        for a, b in combinations(factors, 2)
        for x in factors[a]
        for y in factors[b]
    }
    while missing:
        first = next(iter(missing))
        best: Row | None = None
        gain = 0
        for _ in range(60):
            row = {name: random.choice(choices) for name, choices in factors.items()}
            row.update(first)
            if (new := sum(pair in missing for pair in _pairs(row))) > gain and possible(row):
                best, gain = row, new
        if best is None:
            # No possible row was found that has this pair.
            del missing[first]
            continue
        for pair in _pairs(best):
            missing.pop(pair, None)
        yield best


def sample(rows: Iterable[Row]) -> list[Row]:
    """All with `make soak`, or the first half, which holds three quarters of the pairs."""
    found = list(rows)
    return found if EXHAUSTIVE else found[: len(found) // 2]


def _pairs(row: Row) -> Iterator[tuple[tuple[str, Any], tuple[str, Any]]]:
    return combinations(row.items(), 2)
