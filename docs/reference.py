"""Writes what can be read off the code: commands.md, options.md, open-options.md, errors.md
and layers.svg.

docs/reference.py            writes them
docs/reference.py --check    fails where they are not what would be written
"""

from __future__ import annotations

import errno
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from layers import layers_svg

from zarrfs.cli.main import cli
from zarrfs.daemon.options.options import IGNORED_HELP, OPTIONS
from zarrfs.daemon.options.tensorstore_names import COUNTERPARTS
from zarrfs.fuse.errnos import ERRNOS

DOCS = Path(__file__).parent

_HEAD = "<!-- Written by docs/reference.py; do not edit. -->\n"

_COMMANDS = """\
# Commands

What `zarrfs COMMAND --help` says. The same is in the man pages: `man zarrfs-mount`.
"""

_OPTIONS = """\
# Mount options

Behind `-o` of `zarrfs mount` and of `mount -t zarrfs`, and in `/etc/fstab`; separated by commas, a
comma inside a value written `\\,`. The last one of a name wins. What is in force is in
`.zarrfs/config.json` of the mount.
"""

_OPEN_OPTIONS = """\
# TensorStore's open options

What TensorStore's drivers `zarr3` and `zarr` take when they open an array, and what does the same
here. Where there is a mount option, TensorStore's name is one too:
`zarrfs mount -o fill_missing_data_reads=false` is `-o fill_missing=false`. The fields are those of
`SourceOptions` of the library, which `zarrfs.open_array` takes.

What TensorStore's schema says of a new array (`chunk_layout` with read and write chunks, elements,
aspect ratios and an order, `codec`, `fill_value`, `dimension_units`), `zarrfs create` takes, and
with `--chunks tensorstore` chooses the rest as TensorStore does. Its `resize` is `zarrfs resize`.
"""

_ERRORS = """\
# Exit statuses and error numbers

## Exit statuses

Every command says in one line on standard error what went wrong. All of them end with

| status | meaning |
|---|---|
| 0 | done |
| 1 | not done |
| 2 | wrong usage: an unknown option or a malformed value |
| 130 | interrupted by Ctrl-C |

and of these mean in particular:
"""

_ERRNOS = """\
## Error numbers

What a program that uses a mount is told. The log has the reason and, for data, the key of the
stored object; so has `.zarrfs/stats.json` of the mount. Kernels that read through their page cache
may turn any error of a read into `EIO`.
"""

# Base classes, and what never answers a request to a file.
_NOT_TOLD = ("ZarrfsError", "UsageError", "MountError", "JournalError", "FileSystemError")


def commands() -> str:
    parts = [_HEAD, _COMMANDS]
    for name, command, context in _all_commands():
        parts += [f"## {name}\n", f"```text\n{command.get_help(context).strip()}\n```\n"]
    return "\n".join(parts)


def options() -> str:
    rows = [
        (
            f"`{option.name}={option.metavar}`" if option.metavar else f"`{option.name}`",
            option.help,
            option.default,
        )
        for option in OPTIONS
    ]
    table = _table(("option", "what", "default"), rows)
    return "\n".join([_HEAD, _OPTIONS, table, f"{_wrapped(IGNORED_HELP)}\n"])


def open_options() -> str:
    rows = [
        (
            f"`{row.name}`",
            f"`-o {row.option}`" if row.option else f"`{row.command}`",
            f"`{row.library}`" if row.library else "",
            row.note,
        )
        for row in COUNTERPARTS
    ]
    heads = ("TensorStore", "zarrfs", "library", "what is to be known")
    return "\n".join([_HEAD, _OPEN_OPTIONS, _table(heads, rows)])


def errors() -> str:
    statuses = [
        (f"`{name}`", " ".join(paragraph.removeprefix("Exit status:").split()))
        for name, command, _ in _all_commands()
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n")
        if paragraph.startswith("Exit status:") and name != "zarrfs"
    ]
    numbers = sorted(
        (_name(number), os.strerror(number), _meaning(kind))
        for kind, number in ERRNOS.items()
        if kind.__name__ not in _NOT_TOLD
    )
    rows = [(f"`{name}`", text, meaning) for name, text, meaning in numbers]
    return "\n".join(
        [
            _HEAD,
            _ERRORS,
            _table(("command", "statuses"), statuses),
            _ERRNOS,
            _table(("number", "as programs print it", "when"), rows),
        ]
    )


def _name(number: int) -> str:
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]


def _meaning(kind: type[BaseException]) -> str:
    """The first sentence of what the class says of itself."""
    if kind is MemoryError:
        return "There is no memory left."
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    return f"{text.partition('. ')[0].rstrip('.')}."


def _all_commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    outer = _context(cli, "zarrfs", None)
    yield "zarrfs", cli, outer
    for name in cli.list_commands(outer):
        command = cli.get_command(outer, name)
        assert command is not None
        yield f"zarrfs {name}", command, _context(command, name, outer)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    # As wide as help is on a terminal of 80 columns, whatever this one has.
    return click.Context(command, parent, name, terminal_width=78, **command.context_settings)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(
        f"| {' | '.join(c.replace('|', chr(92) + '|') for c in row)} |\n" for row in lines
    )


def _wrapped(text: str) -> str:
    return click.wrap_text(text, width=100)


def pages() -> dict[Path, str]:
    """What is written, by place."""
    return {
        DOCS / "commands.md": commands(),
        DOCS / "options.md": options(),
        DOCS / "open-options.md": open_options(),
        DOCS / "errors.md": errors(),
        DOCS / "layers.svg": layers_svg(),
    }


def main() -> None:
    checking = "--check" in sys.argv[1:]
    for path, text in pages().items():
        if not checking:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is out of date: run make docs")


if __name__ == "__main__":
    main()
