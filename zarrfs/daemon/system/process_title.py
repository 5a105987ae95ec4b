"""Taking secrets out of what others see in the list of processes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# Of /proc/self/stat, counted from the first behind the name in parentheses; see proc(5).
_ARG_START, _ARG_END = 48 - 3, 49 - 3


def hide(replacements: Mapping[str, str]) -> None:
    """Has the arguments of this process show other texts, no longer than the true ones.

    Python has copied its arguments, so only those who look from outside see a difference.
    Children that are forked later show the same. Where the kernel does not tell where the
    arguments are, nothing is hidden.
    """
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        if not 0 < start < end:
            return
        shown = ctypes.string_at(start, end - start)
        for true, other in replacements.items():
            old, new = os.fsencode(true), os.fsencode(other)
            if old and len(new) <= len(old):
                shown = shown.replace(old, new.ljust(len(old)))
        ctypes.memmove(start, shown, end - start)
