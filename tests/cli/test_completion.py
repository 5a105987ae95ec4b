"""Completion in a real bash, with its real line editor: what Tab makes of a line."""

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import click
import pytest

from tests.conftest import run_python
from zarrfs.cli.completion import SHELLS
from zarrfs.cli.main import cli
from zarrfs.daemon.options.options import OPTIONS

_PROMPT = "ready> "


def _run(instruction: str, **environment: str) -> str:
    return run_python(
        "-m",
        "zarrfs",
        timeout=30,
        check=True,
        env={**os.environ, "_ZARRFS_COMPLETE": instruction, **environment},
    ).stdout


class Bash:
    """An interactive bash on a terminal of its own, in ``directory``."""

    def __init__(self, directory: Path) -> None:
        programs = directory / "programs"
        programs.mkdir()
        # The command under test, whatever else is on the PATH.
        command = programs / "zarrfs"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m zarrfs "$@"\n')
        command.chmod(0o755)
        (directory / "completion").write_text(_run("bash_source"))
        (directory / "rc").write_text(
            f"PS1='{_PROMPT}' PATH={programs}:$PATH\n"
            "bind 'set bell-style none' 'set enable-bracketed-paste off'\n"
            "bind 'set show-all-if-ambiguous on' 'set page-completions off'\n"
            "bind 'set completion-query-items 0'\n"
            f". {directory}/completion\n"
        )
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.environ.update(TERM="dumb", COLUMNS="500", HISTFILE="/dev/null")
            os.execvp("bash", ["bash", "--noprofile", "--rcfile", "rc", "-i"])
        self._said(_PROMPT)

    def _said(self, end: str) -> str:
        """What the terminal shows up to ``end``."""
        said = ""
        give_up = time.monotonic() + 30
        while not said.endswith(end):
            assert time.monotonic() < give_up, said
            if select.select([self.terminal], [], [], 1)[0]:
                said += os.read(self.terminal, 65536).decode()
        return said

    def answers(self, line: str) -> list[str]:
        """What Alt-? lists behind ``line``."""
        os.write(self.terminal, f"{line}\x1b?\x05".encode())
        said = self._said(f"{_PROMPT}{line}")
        self._kill_line()
        lines = said.replace("\r", "").split("\n")[1:-1]
        return [word for text in lines for word in re.split(r" {2,}", text.strip()) if word]

    def completed(self, line: str) -> str:
        """The line that Tab makes of ``line``."""
        # The end of the line is told by what is typed behind it.
        os.write(self.terminal, f"{line}\t#".encode())
        said = self._said("#")
        self._kill_line()
        return said.rpartition(_PROMPT)[2].removesuffix("#").replace("\r", "")

    def _kill_line(self) -> None:
        # The sum, which is not what was typed, tells that this very line has been run.
        os.write(self.terminal, b"\x15echo $((20+22))\n")
        self._said(f"42\r\n{_PROMPT}")

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.fixture
def bash(tmp_path):
    shell = Bash(tmp_path)
    yield shell
    shell.close()


def test_commands(bash):
    assert set(bash.answers("zarrfs ")) == set(cli.list_commands(click.Context(cli)))
    assert bash.completed("zarrfs umo") == "zarrfs umount "
    assert bash.completed("zarrfs mount --fore") == "zarrfs mount --foreground "


def test_mount_options(bash):
    names = {f"{option.name}{'=' if option.metavar else ''}" for option in OPTIONS}
    assert set(bash.answers("zarrfs mount -o ")) == names
    assert bash.completed("zarrfs mount -o byt") == "zarrfs mount -o byteorder="
    assert bash.completed("zarrfs mount -o rw,flush") == "zarrfs mount -o rw,flush_delay="
    assert bash.completed("zarrfs mount -o rw,byteorder=b") == "zarrfs mount -o rw,byteorder=big "
    assert set(bash.answers("zarrfs mount -o order=")) == {"C", "F"}
    assert set(bash.answers("zarrfs mount -o recheck=")) == {"never", "always"}
    assert bash.completed("zarrfs mount -o order=F,umas") == "zarrfs mount -o order=F,umask="


def test_data_types(bash):
    assert bash.completed("zarrfs create a --dtype uint1") == "zarrfs create a --dtype uint16 "
    assert {"float32", "complex64", "string", "bool"} <= set(
        bash.answers("zarrfs create a --dtype ")
    )


def test_files_and_directories(bash, tmp_path):
    (tmp_path / "cells of mine.zarr").mkdir()
    (tmp_path / "data.zip").touch()
    (tmp_path / "data").mkdir()
    assert set(bash.answers("zarrfs mount da")) == {"data/", "data.zip"}
    assert bash.completed("zarrfs mount cel") == r"zarrfs mount cells\ of\ mine.zarr/"
    assert set(bash.answers("zarrfs mount data.zip da")) == {"data/", "data.zip"}


def test_mount_points(bash, mount_daemon, tmp_path):
    (tmp_path / "group.zarr").mkdir()
    (tmp_path / "group.zarr/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    path = mount_daemon(tmp_path / "group.zarr", at=tmp_path / "a mount").path
    typed = str(path).replace(" ", r"\ ")
    assert bash.completed(f"zarrfs umount {path.parent}/a") == f"zarrfs umount {typed} "
    assert bash.completed("zarrfs umount a") == r"zarrfs umount a\ mount "
    assert bash.completed(f"zarrfs umount {path.parent}/g").endswith("/g")


def test_actions(bash):
    assert set(bash.answers("zarrfs control /mnt ")) == {"flush", "drop", "memory="}
    assert bash.completed("zarrfs control /mnt flush mem") == "zarrfs control /mnt flush memory="


def test_every_argument_is_completed():
    """Of every command there is: files, directories or mount points."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        arguments = [item for item in command.params if isinstance(item, click.Argument)]
        for position, argument in enumerate(arguments):
            line = " ".join(["zarrfs", name, *["x"] * position, ""])
            answer = _run("bash_complete", COMP_LINE=line)
            wanted = ("plain,", "\n") if argument.name in ("mountpoint", "actions") else ()
            assert answer.startswith(("file,", "dir,", *wanted)), line


@pytest.mark.parametrize("shell", [shell.name for shell in SHELLS])
def test_scripts_ask_the_installed_command(shell):
    script = _run(f"{shell}_source")
    assert f"_ZARRFS_COMPLETE={shell}_complete" in script
    assert "%(" not in script


def test_values_in_zsh_and_fish():
    """They take the word as a whole, with an explanation behind it."""
    line = "zarrfs mount -o rw,journ"
    fish = _run("fish_complete", COMP_WORDS=line, COMP_CWORD="rw,journ")
    assert fish.startswith("plain,rw,journal=\tDirectory for changes")
    assert 'string split --max 1 ","' in _run("fish_source")
    zsh = _run("zsh_complete", COMP_WORDS=line, COMP_CWORD="3")
    assert zsh.startswith("plain\nrw,journal=\nDirectory for changes")
