"""What is written from the code is what would be written now."""

import subprocess
import sys
from pathlib import Path

import click

from zarrfs.cli.main import cli

DOCS = Path(__file__).parents[2] / "docs"


def test_up_to_date() -> None:
    """``make docs`` writes it anew."""
    done = subprocess.run(
        [sys.executable, DOCS / "reference.py", "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_says_its_exit_statuses() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    for name in cli.list_commands(click.Context(cli)):
        assert f"| `zarrfs {name}` | 0 " in text
