"""The man pages, from what ``--help`` says.

    python share/man_pages.py DIRECTORY     writes them there

Each command is asked to format its help, as for ``--help``, with a formatter that writes roff in
place of columns; so whatever a command says is in its page. Only ``mount.zarrfs`` is not one of
the commands.
"""

from __future__ import annotations

import datetime
import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import click

from zarrfs import __version__
from zarrfs.cli import mount_helper
from zarrfs.cli.main import cli
from zarrfs.daemon.options.options import IGNORED_HELP, OPTIONS

# The order in man-pages(7); others come before the first of these that is there.
_LAST = ("EXIT STATUS", "EXAMPLES", "SEE ALSO")
_HEADED = re.compile(r"(Examples|Exit status): *(.*)", re.DOTALL)


def pages() -> dict[str, str]:
    """The text of each page, by file name."""
    found = {"zarrfs.1": _command_page("zarrfs", cli, None)}
    with _context(cli, "zarrfs") as context:
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            assert command is not None
            found[f"zarrfs-{name}.1"] = _command_page(name, command, context)
    found["mount.zarrfs.8"] = _mount_helper_page()
    return found


class RoffFormatter(click.HelpFormatter):
    """Collects what a command writes into sections of a man page."""

    def __init__(self) -> None:
        super().__init__(width=1000)
        self.sections: dict[str, list[str]] = {}
        self._name = "DESCRIPTION"

    def _add(self, *lines: str, name: str | None = None) -> None:
        self.sections.setdefault(name or self._name, []).extend(lines)

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self._add(f"\\fB{_text(prog)}\\fR {_arguments(args)}", name="SYNOPSIS")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        # What comes behind its end is about it too.
        self._name = re.sub(r" *\(.*\)", "", name).upper()
        yield

    def write_paragraph(self) -> None:
        """Each text is a paragraph anyway."""

    def write(self, string: str) -> None:
        raise NotImplementedError("a command that writes its help past the formatter")

    def write_text(self, text: str) -> None:
        alone = None  # a heading whose paragraph is the next one
        for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
            literal = paragraph.startswith("\b")
            name, body = alone, paragraph.removeprefix("\b").strip("\n")
            headed = _HEADED.fullmatch(body)
            if headed:
                name, body = headed[1].upper(), dedent(headed[2].strip("\n"))
            alone = None if body else name
            self._add(*_paragraph(body, literal=literal), name=name)

    def write_dl(
        self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        commands = self._name == "COMMANDS"
        for term, text in rows:
            head = f"\\fBzarrfs\\-{_text(term)}\\fR(1)" if commands else _term(term)
            self._add(".TP", head, _text(text))


def _command_page(name: str, command: click.Command, parent: click.Context | None) -> str:
    title = f"zarrfs-{name}" if parent else name
    with _context(command, name, parent) as context:
        formatter = RoffFormatter()
        command.format_help(context, formatter)
    summary = inspect.cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")
    others = {"zarrfs(1)", "zarrfs-mount(1)", "mount.zarrfs(8)"} - {f"{title}(1)"}
    formatter.sections["SEE ALSO"] = _references(others)
    return _page(title, 1, summary, formatter.sections)


def _context(
    command: click.Command, name: str, parent: click.Context | None = None
) -> click.Context:
    return click.Context(command, parent, name, **command.context_settings)


def _mount_helper_page() -> str:
    formatter = RoffFormatter()
    formatter.write_usage("mount -t zarrfs", "SOURCE DIRECTORY [-o OPTION[=VALUE],…]")
    formatter.write_text(
        "mount(8) runs this program for the file system type zarrfs, and for lines of /etc/fstab "
        "with that type. It does what zarrfs-mount(1) does, with the same options behind -o. The "
        "mount is of type fuse.zarrfs. It is taken away by umount(8), or by zarrfs-umount(1), "
        "which waits until all changes are stored and tells if one could not be.\n\n"
        "Unlike other file systems it is read-only unless rw is among the options."
    )
    with _context(mount_helper.command, "mount.zarrfs") as context:
        mount_helper.command.format_options(context, formatter)
    with formatter.section("Mount options"):
        formatter.write_dl(
            [
                (
                    f"{option.name}={option.metavar}" if option.metavar else option.name,
                    f"{option.help} [default: {option.default}]",
                )
                for option in OPTIONS
            ]
        )
        formatter.write_text(IGNORED_HELP)
    formatter.write_text(
        "Exit status: As mount(8) has it, 0 mounted, 1 wrong usage, 32 not mounted."
    )
    formatter.write_text(
        "Examples:\n\n\b\nmount -t zarrfs -o ro,allow_other /data/cells.zarr /mnt/cells"
    )
    formatter.sections["EXAMPLES"] += [
        *_paragraph("A line of /etc/fstab for a remote array, mounted when it is first used:"),
        *_paragraph(
            "s3://bucket/cells.zarr /mnt/cells zarrfs ro,_netdev,noauto,x-systemd.automount 0 0",
            literal=True,
        ),
    ]
    formatter.sections["SEE ALSO"] = _references(
        ["zarrfs-mount(1)", "zarrfs-umount(1)", "fstab(5)", "mount(8)", "systemd.mount(5)"]
    )
    return _page("mount.zarrfs", 8, "Mount Zarr arrays as ordinary files.", formatter.sections)


def _page(title: str, section: int, summary: str, sections: dict[str, list[str]]) -> str:
    first = [name for name in ("SYNOPSIS", "DESCRIPTION") if name in sections]
    last = [name for name in _LAST if name in sections]
    middle = [name for name in sections if name not in (*first, *last)]
    name = f"{title} - {summary[:1].lower()}{summary[1:].rstrip('.')}"
    lines = [
        f'.TH "{_text(title.upper())}" "{section}" "{_date()}" "zarrfs {__version__}"',
        ".SH NAME",
        _text(name),
    ]
    for heading in (*first, *middle, *last):
        lines += [f'.SH "{heading}"', *_without_leading_break(sections[heading])]
    return "\n".join(lines) + "\n"


def _paragraph(body: str, *, literal: bool = False) -> list[str]:
    if not body:
        return []
    if literal:
        return [".PP", ".nf", *(_text(line) for line in body.split("\n")), ".fi"]
    return [".PP", _text(" ".join(body.split()))]


def _without_leading_break(lines: list[str]) -> list[str]:
    """A heading breaks the paragraph already."""
    return lines[1:] if lines[:1] == [".PP"] else lines


def _references(names: Iterable[str]) -> list[str]:
    rows = []
    for name in sorted(names, key=lambda name: (name[-2], name)):
        page, number = name[:-3], name[-3:]
        rows.append(f".BR {_text(page)} {number}")
    return [f"{row} ," for row in rows[:-1]] + rows[-1:]


def _term(text: str) -> str:
    """``-o, --name VALUE`` or ``name=VALUE``, what is to be replaced in italics."""
    return re.sub(r"(?<![\w-])([A-Z][A-Z_|a-z]*)(?![\w])", r"\\fI\1\\fB", f"\\fB{_text(text)}\\fR")


def _arguments(text: str) -> str:
    return re.sub(r"\b([A-Z]{2,})\b", r"\\fI\1\\fR", _text(text))


def _text(text: str) -> str:
    """``text`` so that roff shows it as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _date() -> str:
    """Of the build; SOURCE_DATE_EPOCH makes it reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def write(directory: Path) -> list[Path]:
    """Writes all pages below ``directory``, as man1/zarrfs.1, and returns where."""
    written = []
    for name, text in pages().items():
        path = directory / f"man{name[-1]}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    write(Path(sys.argv[1]))
