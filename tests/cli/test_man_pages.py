"""The man pages: of every command, complete, and clean for mandoc."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.conftest import run_program
from zarrfs import __version__
from zarrfs.cli.main import cli
from zarrfs.daemon.options.options import OPTIONS

GENERATOR = Path(__file__).parents[2] / "share" / "man_pages.py"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Where each page is, by its name.

    Made as when the wheel is built, where nothing but click is installed.
    """
    directory = tmp_path_factory.mktemp("man")
    installed = tmp_path_factory.mktemp("installed")
    (installed / "click").symlink_to(Path(click.__file__).parent)
    subprocess.run(
        [sys.executable, "-S", GENERATOR, directory],
        env={"PYTHONPATH": f"{installed}:{GENERATOR.parents[1]}", "PATH": os.environ["PATH"]},
        check=True,
        timeout=60,
    )
    return {path.name: path for path in directory.glob("man?/*")}


def _shown(path: Path) -> str:
    done = run_program("mandoc", "-T", "utf8", "-O", "width=500", path, check=True)
    # Bold and underlined letters are printed over each other.
    return re.sub(".\x08", "", done.stdout)


def test_a_page_for_every_command(pages):
    commands = cli.list_commands(click.Context(cli))
    assert set(pages) == {"zarrfs.1", "mount.zarrfs.8", *(f"zarrfs-{name}.1" for name in commands)}


def test_mandoc_finds_nothing(pages):
    done = run_program("mandoc", "-T", "lint", "-W", "warning", *pages.values())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_that_help_says(pages):
    """Every word of ``--help``, in whatever order."""
    context = click.Context(cli, info_name="zarrfs")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        # So wide that no word is broken.
        settings = {"terminal_width": 1000, **command.context_settings}
        with click.Context(command, context, name, **settings) as inner:
            help_text = command.get_help(inner)
        shown = set(_shown(pages[f"zarrfs-{name}.1"]).split())
        headings = {"Usage:", "Options:", "Examples:", "Exit", "status:", "Mount", "options"}
        missing = set(help_text.split()) - shown - headings
        assert not {word for word in missing if not word.endswith(":")}, name


@pytest.mark.parametrize("name", ["zarrfs-mount.1", "mount.zarrfs.8"])
def test_mount_options(pages, name):
    text = " ".join(_shown(pages[name]).split())
    for option in OPTIONS:
        head = f"{option.name}={option.metavar}" if option.metavar else option.name
        assert f"{head} {' '.join(option.help.split())} [default: {option.default}]" in text


def test_sections_in_order(pages):
    lines = _shown(pages["zarrfs-mount.1"]).splitlines()
    headings = [line for line in lines if line and not line.startswith(" ")][1:-1]
    assert headings == [
        *("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "MOUNT OPTIONS"),
        *("EXIT STATUS", "EXAMPLES", "SEE ALSO"),
    ]
    assert f"zarrfs {__version__}" in lines[-1]


def test_examples_are_under_their_heading(pages):
    for name, example in {
        "zarrfs-mount.1": "zarrfs mount -o rw data.zarr /mnt/data",
        "mount.zarrfs.8": "mount -t zarrfs -o ro,allow_other /data/cells.zarr /mnt/cells",
    }.items():
        _, _, examples = _shown(pages[name]).partition("\nEXAMPLES\n")
        assert example in examples.partition("\nSEE ALSO\n")[0]
