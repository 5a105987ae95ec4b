"""Copies of the repository in which one module is another one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.mutations import ROOT, Mutation
from tests.mutants.session import Result

_COPIED = ("zarrfs", "tests", "docs", "share", "systemd", "pyproject.toml", "README.md", ".ci")
_TIMEOUT_S = 900


class Copy:
    """A copy that takes one mutation at a time, in new processes."""

    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="zarrfs-mutants-"))
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.svg")
                shutil.copytree(source, self._place / name, symlinks=True, ignore=ignored)
            elif source.exists():
                shutil.copy(source, self._place / name)

    def close(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def result(self, mutation: Mutation, tests: Sequence[str]) -> Result:
        path = self._place / mutation.module
        good = path.read_bytes()
        begun = time.monotonic()
        path.write_bytes(mutation.applied(good))
        try:
            fate = self._run(tests)
        finally:
            path.write_bytes(good)
        return Result(mutation, fate, "in a copy", time.monotonic() - begun)

    def _run(self, tests: Sequence[str]) -> str:
        options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-o", "timeout=60"]
        command = [sys.executable, "-B", "-m", "pytest", *options, *tests]
        with subprocess.Popen(
            command,
            cwd=self._place,
            env={**os.environ, "PYTHONPATH": str(self._place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                status = process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timeout"
        return "survived" if status == 0 else "killed"
