"""Child interpreters: isolated from the working directory."""

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.conftest import run_program
from zarrfs.isolation.interpreter import command

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("way", ["program", "module"])
def test_modules_of_the_working_directory_do_not_run(tmp_path, way):
    """`python -m` has the working directory in its path, and its children have not."""
    with h5py.File(tmp_path / "data.nc", "w") as file:
        file["a"] = np.arange(6)
    (tmp_path / "kerchunk.py").write_text("open('it ran', 'w').close()\n")
    (tmp_path / "h5py.py").write_text("open('it ran', 'w').close()\n")
    program = (
        [sys.executable, "-m", "zarrfs"]
        if way == "module"
        else [str(Path(sys.executable).with_name("zarrfs"))]
    )
    done = run_program(
        *program,
        "info",
        "data.nc",
        env={**os.environ, "PYTHONPATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")},
        cwd=tmp_path,
    )
    assert not (tmp_path / "it ran").exists()
    assert done.returncode == 0, done.stderr
    assert "int64" in done.stdout


def test_arguments_and_status():
    done = subprocess.run(
        command("tests.unit.isolation.exiting", "5", "2"), timeout=50, check=False
    )
    assert done.returncode == 7
