"""What is written from the code is what would be written now."""

from pathlib import Path

import click

from tests.conftest import run_python
from zarrfs.cli.main import cli

DOCS = Path(__file__).parents[2] / "docs"


def test_up_to_date() -> None:
    """``make docs`` writes it anew."""
    done = run_python(DOCS / "reference.py", "--check")
    assert done.returncode == 0, done.stderr


def test_every_command_says_its_exit_statuses() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    for name in cli.list_commands(click.Context(cli)):
        assert f"| `zarrfs {name}` | 0 " in text
