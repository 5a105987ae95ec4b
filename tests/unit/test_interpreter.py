"""Child interpreters: started in one place, and isolated from the working directory."""

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import zarrfs
from tests.conftest import run_program
from zarrfs.isolation.interpreter import command

pytestmark = pytest.mark.timeout(60)

ROOT = Path(zarrfs.__file__).parent
# Modules that may start programs: their commands come from `command`, or run no Python.
STARTERS = {
    "isolation/decoders.py", "fuse/unmount.py", "jobs/nursery.py",
}  # fmt: skip
# Modules that name the interpreter; `installation` looks at the permissions of its file.
NAMERS = {"isolation/interpreter.py", "daemon/system/installation.py"}
STARTING = ("subprocess", "multiprocessing", "pty")
CALLS = ("exec", "spawn", "posix_spawn", "popen", "system", "open_process", "run_process")


@functools.cache
def trees():
    return [
        (str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in ROOT.rglob("*.py")
    ]


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)


def modules_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_one_place_starts_interpreters():
    """No other module names the interpreter, an option of it, or a way to start a program."""
    for name, tree in trees():
        strings = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.List | ast.Tuple)
            for node in node.elts
            if isinstance(node, ast.Constant)
        }
        assert name in NAMERS or "executable" not in set(names_in(tree)), name
        assert name == "isolation/interpreter.py" or not strings & {"-I", "python", "python3"}, name


def test_few_modules_start_programs():
    for name, tree in trees():
        # `multiprocessing.synchronize` makes a lock, and starts nothing.
        modules = {each for each in modules_in(tree) if each != "multiprocessing.synchronize"}
        starts = [each for each in modules if each.partition(".")[0] in STARTING]
        called = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr.startswith(CALLS)
            if isinstance(node.value, ast.Name) and node.value.id in ("os", "trio")
        }
        assert name in STARTERS or not starts, (name, starts)
        assert name in STARTERS or not called, (name, called)


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
    done = subprocess.run(command("tests.unit.exiting", "5", "2"), timeout=50, check=False)
    assert done.returncode == 7
