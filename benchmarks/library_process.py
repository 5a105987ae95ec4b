"""Runs one task of `benchmarks.libraries` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).parent.parent


class Taken(NamedTuple):
    """What a task took; its imports and preparations do not count.

    processor : user and system time of all its threads, in seconds.
    """

    seconds: float
    processor: float


def run_task(task: str, before: Callable[[], object], **arguments: Any) -> Taken:
    """Runs ``task``; calls ``before`` when all is prepared, just before the task begins.

    Raises `RuntimeError` where the task fails.
    """
    words = [sys.executable, "-m", "benchmarks.worker", task, json.dumps(arguments)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before()
        told = process.communicate("go\n")[0]
    if process.returncode:
        raise RuntimeError(f"{words} failed")
    found = json.loads(told)
    return Taken(found["seconds"], found["processor"])
