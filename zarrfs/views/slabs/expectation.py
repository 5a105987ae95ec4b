"""Whether a program goes on to read or write in order, so that a slab is worth making."""

from __future__ import annotations

# A slab that was made in vain takes as long as many requests without one. A program that reads and
# writes in turns puts each slab out of date: 256 MiB in chunks of 2 MiB took 15 s, and take 5.
_FACTOR = 4
_MOST = 256


class Expectation:
    """How many times as many bytes in order as usual it takes until the next slab.

    It grows with each slab that a reader, a writer or a sync has broken up or put out of date, and
    is 1 again when a slab came to its end, or the program goes on elsewhere. Any thread may change
    it.
    """

    __slots__ = ("times",)

    def __init__(self) -> None:
        self.times = 1

    def disappointed(self) -> None:
        """A slab was not used up to its end."""
        self.times = min(_FACTOR * self.times, _MOST)
