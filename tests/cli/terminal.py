"""The real command on a terminal of its own."""

import os
import pty
import select
import subprocess
import time
from pathlib import Path

from tests.conftest import COMMAND


def run_in_terminal(*arguments: str | Path, timeout: float = 60.0, **keywords) -> tuple[int, str]:
    """Exit status, and what standard error shows on a terminal of 100 columns."""
    parent, child = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=keywords.pop("stdout", subprocess.DEVNULL),
            stderr=child,
            env={**os.environ, "COLUMNS": "100"},
            **keywords,
        )
    finally:
        os.close(child)
    shown = b""
    give_up = time.monotonic() + timeout
    try:
        while time.monotonic() < give_up:
            if select.select([parent], [], [], 0.5)[0]:
                try:
                    piece = os.read(parent, 4096)
                except OSError:
                    break  # the other end is closed
                if not piece:
                    break
                shown += piece
        return process.wait(timeout=30), shown.decode()
    finally:
        process.kill()
        process.wait()
        os.close(parent)
