"""A line on a terminal that shows the progress; nothing anywhere else."""

from __future__ import annotations

import shutil
import sys
import time
from datetime import timedelta
from typing import Self

from zarrfs.cli.sizes import size_text

_EVERY_SECONDS = 0.1
_BAR = 24
_SHORTEST_BAR = 4


class ProgressLine:
    """Call it often, with the amounts that are done and that there are in all.

    unit : what is counted; None: bytes.
    """

    def __init__(self, label: str, unit: str | None = None) -> None:
        self._label = label
        self._unit = unit
        self._shown = sys.stderr.isatty()
        self._begun = self._last = time.monotonic()
        self._first: int | None = None
        self._width = 0
        self._text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._width:
            return
        # The error message gets its own line.
        self._write(self._text)
        sys.stderr.write("\n")
        sys.stderr.flush()

    def __call__(self, done: int, total: int) -> None:
        """total : negative where it is not known."""
        now = time.monotonic()
        if not self._shown:
            return
        if self._first is None:
            # Chunks that existed before do not count for the speed.
            self._first = done
        over = 0 <= total <= done
        self._text = self._line(done, total, now)
        if over or now - self._last >= _EVERY_SECONDS:
            self._last = now
            self._write(self._text)

    def interrupt(self) -> None:
        """Clear the line, for something else to be written; it comes again."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    def _line(self, done: int, total: int, now: float) -> str:
        """As long as the terminal is wide, or shorter: the bar gives way to the numbers."""
        if total < 0:
            rate = done / max(now - self._begun, 1e-9)
            return f"{self._label}  {self._amount(done)}  {self._amount(rate)}/s"
        share = done / total if total else 1.0
        elapsed = now - self._begun
        rate = (done - (self._first or 0)) / elapsed if elapsed > 0 else 0.0
        parts = [
            f" {int(share * 100):3d}%",
            f"{self._amount(done)} of {self._amount(total)}",
            f"{self._amount(rate)}/s",
        ]
        if done < total and rate > 0:
            parts.append(f"{_clock((total - done) / rate)} left")
        elif done >= total:
            parts.append(f"in {_clock(elapsed)}")
        numbers = "  ".join(parts)
        bar = min(_BAR, _columns() - len(self._label) - len(" []") - len(numbers))
        if bar < _SHORTEST_BAR:
            return self._label + numbers
        filled = int(share * bar)
        return f"{self._label} [{'#' * filled}{'.' * (bar - filled)}]{numbers}"

    def _amount(self, number: float) -> str:
        return size_text(number) if self._unit is None else f"{int(number)} {self._unit}"

    def _write(self, text: str) -> None:
        text = text[: _columns()]
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


def _columns() -> int:
    """How many may be written to. The last would make some terminals begin a new line."""
    return shutil.get_terminal_size().columns - 1


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds + 0.5)))
