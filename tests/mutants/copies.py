"""A copy of the repository in which one module is another one, for tests in new processes."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.mutations import ROOT, Mutation

_COPIED = ("zarrfs", "tests", "docs", "share", "systemd", "pyproject.toml", "README.md", ".ci")


def tests_fail(mutation: Mutation, tests: Sequence[str]) -> bool:
    """Whether one of the tests fails, files or names of pytest, where there is a mutation."""
    place = Path(tempfile.mkdtemp(prefix="zarrfs-mutants-"))
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.svg")
            shutil.copytree(source, place / name, symlinks=True, ignore=ignored)
        elif source.exists():
            shutil.copy(source, place / name)
    path = place / mutation.module
    path.write_bytes(mutation.applied(path.read_bytes()))
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-o", "timeout=60"]
    try:
        ended = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", *options, *tests],
            cwd=place,
            env={**os.environ, "PYTHONPATH": str(place)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return ended.returncode != 0
