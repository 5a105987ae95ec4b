"""A bar on a terminal that shows the progress; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from itertools import repeat
from typing import Self

import click

from zarrfs.cli.sizes import size_text

_EVERY_SECONDS = 0.1
# Clears the line, and shows the cursor, which the bar hides.
_CLEAR = "\r\x1b[K\x1b[?25h"


class ProgressBar:
    """Call it often, with the amounts that are done and that there are in all.

    unit : what is counted; None: bytes.
    """

    def __init__(self, label: str, unit: str | None = None) -> None:
        self._unit = unit
        self._shown = sys.stderr.isatty()
        self._bar = click.progressbar(
            repeat(""),
            label=label,
            item_show_func=lambda amounts: amounts,
            file=sys.stderr,
            width=0,
            update_min_steps=0,
        )
        self._first: int | None = None
        self._due = 0.0
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            # The error message gets its own line.
            self._bar.render_finish()

    def __call__(self, done: int, total: int) -> None:
        """total : negative where it is not known."""
        bar, now = self._bar, time.monotonic()
        if not self._shown or (now < self._due and done != total):
            return
        self._due = now + _EVERY_SECONDS
        if self._first is None:
            # Chunks that existed before do not count for the speed.
            self._first = done
        amounts = self._amount(done)
        if total >= 0:
            bar.length = total - self._first
            amounts += f" of {self._amount(total)}"
        if seconds := bar.time_per_iteration:
            amounts += f"  {self._amount(1 / seconds)}/s"
        bar.update(done - self._first - bar.pos, amounts)
        self._drawn = True

    def interrupt(self) -> None:
        """Clear the bar, for something else to be written; it comes again."""
        if self._drawn:
            click.echo(_CLEAR, sys.stderr, nl=False)
            self._drawn = False

    def _amount(self, number: float) -> str:
        return size_text(number) if self._unit is None else f"{int(number)} {self._unit}"
