"""Where pyfuse3 or libfuse is not installed: one line says so, and the rest works."""

import os
import subprocess
from pathlib import Path

import click
import pytest

from tests.conftest import run_python
from zarrfs.cli.main import cli

BROKEN = {
    "pyfuse3 is not there": "raise ModuleNotFoundError('no pyfuse3', name='pyfuse3')",
    "libfuse is not there": "raise ImportError('libfuse3.so.3: no such file', name='pyfuse3')",
}


@pytest.fixture(params=BROKEN)
def run(request, tmp_path):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/pyfuse3.py").write_text(BROKEN[request.param])
    (tmp_path / "modules/trio.py").write_text("raise ModuleNotFoundError('no trio', name='trio')")
    places = [str(tmp_path / "modules"), os.environ.get("PYTHONPATH", "")]

    def zarrfs(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return run_python(
            "-m",
            "zarrfs",
            *arguments,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))},
            cwd=tmp_path,
        )

    return zarrfs


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


def test_every_command_loads(run):
    for name in cli.list_commands(click.Context(cli)):
        done = run(name, "--help")
        assert (done.returncode, done.stderr) == (0, ""), name


def test_umount(run, tmp_path):
    done = run("umount", tmp_path)
    assert (done.returncode, done.stderr) == (1, f"zarrfs: {tmp_path} is not mounted\n")
