"""Where pyfuse3 or libfuse is not installed: one line says so, and the rest works."""

import os
from functools import partial

import click
import pytest

from tests.conftest import run_python
from zarrfs.cli.main import cli

BROKEN = {
    "pyfuse3 is not there": "raise ModuleNotFoundError('no pyfuse3', name='pyfuse3')",
    "libfuse is not there": "raise ImportError('libfuse3.so.3: no such file', name='pyfuse3')",
}


@pytest.fixture(params=BROKEN)
def python(request, tmp_path):
    """A new interpreter that finds neither the library nor trio."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/pyfuse3.py").write_text(BROKEN[request.param])
    (tmp_path / "modules/trio.py").write_text("raise ModuleNotFoundError('no trio', name='trio')")
    places = [str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    return partial(run_python, env=environment, cwd=tmp_path)


@pytest.fixture
def run(python):
    return partial(python, "-m", "zarrfs")


@pytest.mark.parametrize("options", [(), ("-f",)])
def test_mount_says_what_to_install(run, tmp_path, options):
    (tmp_path / "group.zarr").mkdir()
    (tmp_path / "mnt").mkdir()
    done = run("mount", *options, tmp_path / "group.zarr", tmp_path / "mnt")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("zarrfs: cannot load ")
    assert line.endswith(
        "which mounting needs: apt-get install fuse3 libfuse3-dev pkg-config gcc python3-dev, "
        "then, in a checkout of zarrfs: pip install '.[mount]'"
    )


def test_every_command_loads(python):
    program = (
        "import sys; from zarrfs.cli.main import cli, run; "
        "sys.exit(any(run(cli, 'zarrfs', [name, '--help']) for name in sys.argv[1:]))"
    )
    names = cli.list_commands(click.Context(cli))
    done = python("-c", program, *names)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: ") >= len(names)


def test_umount(run, tmp_path):
    done = run("umount", tmp_path)
    assert (done.returncode, done.stderr) == (1, f"zarrfs: {tmp_path} is not mounted\n")
