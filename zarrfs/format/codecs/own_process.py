"""Settings of foreign libraries that hold for a whole process.

A library must not change them for the program that imports it. The daemon, its workers and the
commands may: their processes are zarrfs's own.
"""

from __future__ import annotations

from collections.abc import Callable

_owned = False
_settings: list[Callable[[], None]] = []


def in_own_process(setting: Callable[[], None]) -> None:
    """Calls ``setting`` in a process that is zarrfs's own: now, or when `own_process` is called."""
    if _owned:
        setting()
    else:
        _settings.append(setting)


def own_process() -> None:
    """Declares that this process, and those it forks, run nothing but zarrfs. Idempotent."""
    global _owned  # noqa: PLW0603 - it is about the process
    _owned = True
    while _settings:
        _settings.pop()()
