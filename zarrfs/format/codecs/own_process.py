"""Settings of foreign libraries that affect the whole process.

As a library, zarrfs must not change them for the program that imports it. The daemon, its workers
and the commands may change them, because their processes run only zarrfs.
"""

from __future__ import annotations

from collections.abc import Callable

_owned = False
_settings: list[Callable[[], None]] = []


def in_own_process(setting: Callable[[], None]) -> None:
    """Call ``setting`` in a process that runs only zarrfs: now, or in `own_process`."""
    if _owned:
        setting()
    else:
        _settings.append(setting)


def own_process() -> None:
    """Declare that this process, and those that it forks, run only zarrfs. Idempotent."""
    global _owned  # noqa: PLW0603 - a property of the process
    _owned = True
    while _settings:
        _settings.pop()()
