"""Counts the calls of a request into zarrfs, in whatever thread they are made."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import zarrfs

_CODE = str(Path(zarrfs.__file__).parent)


class CallCount:
    """Counts in threads that start within it, between `begin` and `end`.

    calls : by module and function. Each step of a generator counts, too.
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self._counting = False
        self._over = False

    def __enter__(self) -> CallCount:
        threading.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        threading.setprofile(None)

    def begin(self) -> None:
        self.calls.clear()
        self._counting = True

    def end(self) -> None:
        self._counting = False

    @property
    def total(self) -> int:
        return self.calls.total()

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.calls}

    def report(self) -> str:
        """Which functions were called most often."""
        most = self.calls.most_common(30)
        return ", ".join(f"{count} {Path(module).stem}.{name}" for (module, name), count in most)

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._over:
            # Threads outlive the count.
            sys.setprofile(None)
        elif self._counting and event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_CODE):
                self.calls[code.co_filename, code.co_qualname] += 1
