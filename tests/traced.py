"""Memory that Python takes."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def traced() -> Iterator[Callable[[], int]]:
    """``peak()``, once it is over: the most bytes taken at a time in between."""
    peaks: list[int] = []
    tracemalloc.start()
    try:
        yield peaks.pop
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
