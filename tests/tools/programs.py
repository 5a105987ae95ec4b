"""Programs that may be there: what is not is skipped aloud."""

import ctypes
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.tools import readers

HINT = "make test-tools installs it"
_MODULES = {"h5py": "h5py", "netcdf4": "netCDF4", "simpleitk": "SimpleITK", "pynrrd": "nrrd",
            "tifffile_memmap": "tifffile"}  # fmt: skip


def need_program(name: str) -> str:
    """The path of a program; skips the test where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"the program {name} is not installed: {HINT}")
    return found


def need_module(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"the Python package {name} is not installed: {HINT}")


def need_library(name: str) -> None:
    try:
        ctypes.CDLL(name)
    except OSError:
        pytest.skip(f"the library {name} is not installed: {HINT}")


def run(*command: object, data: bytes | None = None) -> bytes:
    """What a program says on standard output; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command], input=data, capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def read(reader: str, paths: list[Path], out: Path) -> list[NDArray]:
    """The arrays that a reader of `readers` finds in files, by a process of its own."""
    need_module(_MODULES.get(reader, reader))
    run(sys.executable, "-W", "ignore", readers.__file__, reader, out, *paths)
    with np.load(out) as found:
        return [found[str(i)] for i in range(len(paths))]
