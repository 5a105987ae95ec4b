"""One shell for all commands of a page, with ``/data`` and ``/mnt`` in a directory of its own."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import run_zarrfs
from tests.docs.pages import Command
from zarrfs.errors import MountError
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, mounts
from zarrfs.fuse.unmount import unmount

_PLACES = re.compile(r"(?<![\w.-])/(data|mnt|scratch)(?![\w-])")
_END = "end-of-command"
_TIMEOUT_S = 150


@dataclass(frozen=True)
class Result:
    command: Command
    said: str
    status: int


class Session:
    """Where the commands of one page run: ``/data`` is the working directory."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = {
            "HOME": str(root / "home"),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            **environment,
        }
        for name in ("data", "mnt", "scratch", "home"):
            (root / name).mkdir(exist_ok=True)

    def run(self, commands: Iterable[Command]) -> list[Result]:
        commands = list(commands)
        script = "".join(
            f"{self._inside(command.text)}\nprintf '\\n{_END} %d\\n' $?\n" for command in commands
        )
        for name in re.findall(rf"{self._root}/mnt/([\w.-]+)", script):
            (self._root / "mnt" / name).mkdir(exist_ok=True)
        # A file, because what a page leaves running would hold a pipe open.
        with tempfile.TemporaryFile() as said:
            shell = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self._root / "data",
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                with suppress(subprocess.TimeoutExpired):  # what did not come is told as missing
                    shell.wait(_TIMEOUT_S)
            finally:
                self._end(shell.pid)
                shell.wait()
            said.seek(0)
            text = self._outside(said.read().decode(errors="replace"))
        parts = re.split(rf"\n{_END} (\d+)\n", text)
        return [
            Result(command, text, int(status))
            for command, text, status in zip(commands, parts[::2], parts[1::2], strict=False)
        ]

    def _inside(self, text: str) -> str:
        return _PLACES.sub(rf"{self._root}/\1", text)

    def _outside(self, text: str) -> str:
        return text.replace(str(self._root / "home"), "~").replace(str(self._root), "")

    def _end(self, group: int) -> None:
        """Nothing that a page has mounted or started outlives it."""
        below = f"{self._root}/"
        for entry in reversed(mounts(FILE_SYSTEM_TYPE)):
            if not entry.path.startswith(below):
                continue
            with suppress(subprocess.TimeoutExpired):
                run_zarrfs("umount", entry.path, timeout=20)
            with suppress(MountError):
                unmount(entry.path, lazy=True)
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
