"""The command in this process, where another one would only take time."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from zarrfs.cli.main import main


@dataclass(frozen=True)
class Done:
    status: int
    stdout: str
    stderr: str


class _Output(io.TextIOWrapper):
    """As standard output is: text, with bytes below it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def getvalue(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()


def in_process(*arguments: object) -> Done:
    """What the command ``zarrfs`` prints, and its exit status."""
    out, err = _Output(), _Output()
    with (
        patch.object(sys, "argv", ["zarrfs", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    return Done(int(status or 0), out.getvalue(), err.getvalue())


def one_line(*arguments: object, fails: int = 0) -> str:
    """The only line printed: of the result, or with the exit status ``fails`` of the error."""
    done = in_process(*arguments)
    assert done.status == fails, done
    told, silent = (done.stdout, done.stderr) if not fails else (done.stderr, done.stdout)
    assert (silent, told.count("\n")) == ("", 1), done
    return told.rstrip("\n")
