"""The command in this process, which saves its start; what matters to a process has its own."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.in_process import Done
from zarrfs.cli.main import main


@pytest.fixture
def run(capfd, monkeypatch) -> Callable[..., Done]:
    """``run(*arguments)``: how the command ends, and what it says."""

    def run_here(*arguments: Any) -> Done:
        monkeypatch.setattr(sys, "argv", ["zarrfs", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Done(int(end.value.code or 0), *capfd.readouterr())

    return run_here


@pytest.fixture
def done(run) -> Callable[..., None]:
    """``done(*arguments)``: it succeeds without a word."""

    def succeed(*arguments: Any) -> None:
        result = run(*arguments)
        assert (result.status, result.stdout, result.stderr) == (0, "", "")

    return succeed


@pytest.fixture
def failed(run) -> Callable[..., str]:
    """``failed(status, *arguments)``: the one line of an error."""

    def fail(status: int, *arguments: Any) -> str:
        result = run(*arguments)
        assert result.status == status, result
        assert result.stderr.startswith("zarrfs: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return fail
