"""One shell for all commands of a page, with ``/data`` and ``/mnt`` in a directory of its own."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import run_python, run_zarrfs
from tests.docs.pages import Command
from tests.forked_mount import forked
from zarrfs.errors import MountError
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, mounts
from zarrfs.fuse.unmount import unmount

_PLACES = re.compile(r"(?<![\w.-])/(data|mnt|scratch)(?![\w-])")
_END = "end-of-command"
_TIMEOUT_S = 150
_SHELL = Path(__file__).with_name("forked_shell.py")


@dataclass(frozen=True)
class Result:
    command: Command
    said: str
    status: int


class Session:
    """Where the commands of one page run: ``/data`` is the working directory."""

    def __init__(self, root: Path, environment: Mapping[str, str], *, forks: bool = True) -> None:
        """forks : whether ``zarrfs`` and ``python3`` may be forks of a process that has begun."""
        self._root = root
        self._forks = forks
        self._environment = {
            "HOME": str(root / "home"),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "PATH": f"{root}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            **environment,
        }
        for name in ("bin", "data", "mnt", "scratch", "home"):
            (root / name).mkdir(exist_ok=True)

    def run(self, commands: Iterable[Command]) -> list[Result]:
        commands = list(commands)
        script = "".join(
            f"{self._inside(command.text)}\nprintf '\\n{_END} %d\\n' $?\n" for command in commands
        )
        for name in re.findall(rf"{self._root}/mnt/([\w.-]+)", script):
            (self._root / "mnt" / name).mkdir(exist_ok=True)
        (self._root / "script").write_text(script)
        call = [*map(str, (_SHELL, self._root, _TIMEOUT_S)), json.dumps(self._environment)]
        try:
            if not (self._forks and forked(call, 2 * _TIMEOUT_S)):
                run_python(*call, timeout=2 * _TIMEOUT_S)
        finally:
            self._end()
        text = self._outside((self._root / "said").read_text(errors="replace"))
        parts = re.split(rf"\n{_END} (\d+)\n", text)
        return [
            Result(command, text, int(status))
            for command, text, status in zip(commands, parts[::2], parts[1::2], strict=False)
        ]

    def _inside(self, text: str) -> str:
        return _PLACES.sub(rf"{self._root}/\1", text)

    def _outside(self, text: str) -> str:
        return text.replace(str(self._root / "home"), "~").replace(str(self._root), "")

    def _end(self) -> None:
        """Nothing that a page has mounted or started outlives it."""
        below = f"{self._root}/"
        for entry in reversed(mounts(FILE_SYSTEM_TYPE)):
            if not entry.path.startswith(below):
                continue
            with suppress(subprocess.TimeoutExpired):
                run_zarrfs("umount", entry.path, timeout=20)
            with suppress(MountError):
                unmount(entry.path, lazy=True)
        with suppress(FileNotFoundError, ProcessLookupError):
            os.killpg(int((self._root / "group").read_text()), signal.SIGKILL)
