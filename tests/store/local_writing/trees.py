"""What lies below a directory, and looking at it as somebody else."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
OLD = b"old"
NEW = b"new one"


def files(root: Path) -> set[str]:
    return {
        os.path.relpath(os.path.join(directory, name), root)
        for directory, _, names in os.walk(root)
        for name in names
    }


def objects(root: Path) -> set[str]:
    """Without what shows that a writer is alive."""
    return {name for name in files(root) if not name.endswith(".lock")}


def as_nobody(check: Callable[[], None]) -> None:
    """Runs ``check`` in a process without privileges."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            check()
            status = 0
        except BaseException as error:  # noqa: BLE001 - tells the parent
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
