"""The commands that README and docs show, and what is said of them.

A fence of ``console`` is a session: lines with ``$ `` are commands, what follows is their output.
Where output is shown it must come; ``…`` stands for anything. A fence of ``sh`` holds commands
alone, one of ``python`` is a program. All fences of a page run one after the other, in one shell.

In a comment right before a fence:

    <!-- not run: REASON -->     needs what tests do not have
    <!-- needs: NAME … -->       run where these programs, or packages of Python or R, are installed
    <!-- fails -->               the last command is meant to fail
    <!-- before: COMMANDS -->    what runs first, and is not shown
"""

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.conftest import run_program

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(
    r"(?:^<!--(?P<note>(?:(?!-->).)*)-->\n+)?"
    r"^(?P<indent> *)(?P<fence>```+)(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^ *(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
# Where Debian has them.
_R_PACKAGES = Path("/usr/lib/R/site-library")
_NOTE = re.compile(r"(not run|before|fails|needs)(?::\s*(.*))?", re.DOTALL)
RUN = ("console", "sh", "python")
# Other names for the same, which would escape.
REFUSED = ("bash", "shell", "shell-session", "sh-session", "zsh", "pycon", "py", "python3")


@dataclass(frozen=True)
class Command:
    """One command, in the words of bash; ``output`` is None where none is shown."""

    text: str
    output: str | None = None


@dataclass(frozen=True)
class Block:
    """One fence that is run, or that says why it is not."""

    place: str
    before: tuple[Command, ...]
    language: str
    body: str
    not_run: str | None
    fails: bool

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """Found where they are run: bash is asked about many of them."""
        return (*self.before, *_commands(self.language, self.body))


def pages() -> list[Path]:
    """All that users read."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(path for path in found if path.name != "CHANGELOG.md")


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        note = _NOTE.fullmatch((fence["note"] or "").strip())
        line = text.count("\n", 0, fence.start("fence")) + 1
        assert fence["language"] not in REFUSED, f"{page}:{line}: {fence['language']} is not run"
        if fence["language"] not in RUN:
            continue
        kind, said = (note[1], note[2]) if note else (None, None)
        before = (Command(said),) if kind == "before" and said else ()
        body = re.sub(f"^{fence['indent']}", "", fence["body"], flags=re.MULTILINE)
        found.append(
            Block(
                f"{os.path.relpath(page, ROOT)}:{line}",
                before,
                fence["language"],
                body,
                _missing(said) if kind == "needs" else _reason(kind, said),
                fails=kind == "fails",
            )
        )
    return found


def _reason(kind: str | None, said: str | None) -> str | None:
    return (said or "no reason") if kind == "not run" else None


def _missing(names: str) -> str | None:
    missing = [name for name in names.split() if not _installed(name)]
    return (
        f"{', '.join(missing)} not installed: make test-tools installs all but torch"
        if missing
        else None
    )


def _installed(name: str) -> bool:
    found = shutil.which(name) or importlib.util.find_spec(name)
    return bool(found) or (_R_PACKAGES / name).exists()


def _commands(language: str, body: str) -> Iterator[Command]:
    if language == "python":
        yield Command(f"python3 - <<'END-OF-PROGRAM'\n{body}END-OF-PROGRAM")
        return
    lines = body.splitlines()
    while lines:
        line = lines.pop(0)
        if language == "console":
            assert line.startswith("$ "), f"no command: {line}"
            line = line.removeprefix("$ ")
        elif not line.strip():
            continue
        while _goes_on(line) and lines:
            line += "\n" + lines.pop(0).removeprefix("> ")
        output = []
        while language == "console" and lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        yield Command(line, "\n".join(output).strip("\n") or None)


def _goes_on(text: str) -> bool:
    """Whether bash would ask for another line."""
    if re.search(r"(?<!\\)\\$", text):
        return True
    if not re.search(r"[\"'`({<\\]|[|&]\s*$|\b(if|for|while|until|case)\b", text):
        # Most are whole, and each question takes a process.
        return False
    done = run_program("bash", "-n", "-c", text)
    return "unexpected" in done.stderr or "here-document" in done.stderr


def matches(shown: str, said: str) -> bool:
    """Whether ``said`` is what a page shows."""
    parts = [re.escape(part) for part in re.split(r"(?m)^…\n| ?… ?", _plain(shown))]
    return re.fullmatch(".*".join(parts), _plain(said), re.DOTALL) is not None


def _plain(text: str) -> str:
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in text.strip().splitlines())
    return "\n".join(lines)
