"""The only place that says how zarrfs starts another Python interpreter.

Another user may write to the working directory, and the environment may name directories for
modules. Neither may decide what a child process imports.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from importlib import import_module; sys.exit(import_module(sys.argv.pop(1)).main())"
)
# The directory that this package was imported from.
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def command(module: str, *arguments: str) -> list[str]:
    """The command line of an isolated interpreter that runs ``main()`` of ``module``.

    arguments : of the program, in ``sys.argv[1:]``. It exits with the status that ``main`` returns.

    It imports from the directories of this process, without the working directory.
    """
    return [sys.executable, "-I", "-c", _PROGRAM, json.dumps(_paths()), module, *arguments]


def _paths() -> list[str]:
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    # `python -m`, and empty parts of PYTHONPATH, name the working directory by its path.
    paths = [path for path in sys.path if os.path.isabs(path) and path != here]
    return paths if _HOME in paths else [*paths, _HOME]


def end_with(pipe: int) -> None:
    """Have the kernel end this process when the other end of a pipe closes.

    A parent that keeps the other end open ends this process with itself, whatever this process is
    doing then: a thread that watches the pipe would need the interpreter's lock.
    """
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        os.read(pipe, 1)
    except BlockingIOError:
        return
    os._exit(1)  # it was closed before
