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
from dataclasses import fields
from pathlib import Path

import click
from layers import layers_svg

from zarrfs.cli.main import cli
from zarrfs.daemon.options.options import IGNORED_HELP, OPTIONS
from zarrfs.daemon.options.tensorstore_names import COUNTERPARTS
from zarrfs.fuse.errnos import ERRNOS
from zarrfs.library.source import SourceOptions

DOCS = Path(__file__).parent

_HEAD = "<!-- Written by docs/reference.py; do not edit. -->\n"

_COMMANDS = """\
# Commands

The output of `zarrfs COMMAND --help`. The man pages have the same text: `man zarrfs-mount`.
"""

_OPTIONS = """\
# Mount options

Options follow `-o` of `zarrfs mount` and `mount -t zarrfs`, or stand in `/etc/fstab`, separated
by commas. Write a comma inside a value as `\\,`. If a name is repeated, the last value counts.
`.zarrfs/config.json` of a mount shows the options in force.
"""

_OPEN_OPTIONS = """\
# TensorStore's open options

If you know TensorStore, find its open option in the table; beside it stands the counterpart in
zarrfs. The options are those of TensorStore's drivers `zarr3` and `zarr`. `zarrfs mount` also
accepts TensorStore's names: `-o fill_missing_data_reads=false` means `-o fill_missing=false`. In
the library, the options are fields of `SourceOptions`, an argument of `zarrfs.open_array`.

`zarrfs create` has options for the fields of TensorStore's schema: `chunk_layout` with read and
write chunks, elements, aspect ratios and order; `codec`; `fill_value`; `dimension_units`. With
`--chunks tensorstore` it chooses the rest by TensorStore's rules. `zarrfs resize` is the
counterpart of TensorStore's `resize`.
"""

_ERRORS = """\
# Exit statuses and error numbers

## Exit statuses

Every error of a command is one line on standard error. All commands use these statuses:

| status | meaning |
|---|---|
| 0 | done |
| 1 | not done |
| 2 | wrong usage: an unknown option or a malformed value |
| 130 | interrupted by Ctrl-C |

For each command they mean:
"""

_ERRNOS = """\
## Error numbers

Programs that use a mount get these errors. The log and `.zarrfs/stats.json` of the mount have the
reason, and for data the key of the stored object. The kernel may turn any error of a read through
its page cache into `EIO`.
"""

# For each errno: usual causes, and what to do.
_CAUSES = {
    errno.EACCES: (
        "The store refused access to an object, or the permissions of the file do not let you in.",
        (
            "Check the credentials of the store and the owner of stored files. For other users: "
            "`-o allow_other`, `uid=`, `gid=`, `umask=`."
        ),
    ),
    errno.EBADF: (
        "The program used a file descriptor after closing it, or wrote to one opened for reading.",
        "Correct the program.",
    ),
    errno.EDQUOT: (
        "Your quota in the store is used up.",
        "Free space. zarrfs keeps the changes and tries again.",
    ),
    errno.EEXIST: (
        "`zarrfs create`: an array, or something else, has that name.",
        "Choose another name, or use `--overwrite` or `--exist-ok`.",
    ),
    errno.EFBIG: (
        "A write beyond the end of a file: files have the size of the array.",
        "Write inside the array, or mount with `-o rw,resize`.",
    ),
    errno.EINVAL: (
        "Written bytes that are not a value of the data type, such as 2 for `bool`.",
        "Write valid values.",
    ),
    errno.EIO: (
        (
            "A chunk does not decode or fails its checksum; a chunk is missing with "
            "`-o fill_missing=false`; metadata are malformed; the store cannot be reached, or "
            "another "
            "program replaced the array while a file was open."
        ),
        (
            "Read the reason in `.zarrfs/stats.json`. For damage: `zarrfs check`. For a "
            "replaced array: "
            "open the file again. For the store: correct the cause and repeat."
        ),
    ),
    errno.EISDIR: ("A file operation on a directory.", "Use the files in the directory."),
    errno.ENODATA: (
        "The file has no extended attribute of that name.",
        "`getfattr -d` lists them. Writable mounts have them with `-o xattr` only.",
    ),
    errno.ENOENT: (
        (
            "No file, array or group of that name. Some views exist only for arrays that their "
            "format "
            "can express."
        ),
        "Check the name; `zarrfs info` lists the files of an array.",
    ),
    errno.ENOMEM: (
        "One chunk or shard needs more memory than the budget, or the machine has no memory left.",
        "Raise `-o memory=`, or `zarrfs control MOUNTPOINT memory=`.",
    ),
    errno.ENOSPC: (
        "The store is full.",
        "Free space. zarrfs keeps the changes and tries again.",
    ),
    errno.ENOTDIR: ("A directory operation on a file.", "Check the path."),
    errno.EOPNOTSUPP: (
        (
            "The array uses a feature that zarrfs does not support; the store cannot list, as "
            "plain "
            "HTTP; or the operation does not exist in this file system, such as setting attributes."
        ),
        "`zarrfs info` has the reason. For HTTP: consolidate the metadata of the hierarchy.",
    ),
    errno.EPERM: (
        (
            "A change of the fixed tree: creating, renaming or removing files, or truncation to "
            "another size."
        ),
        (
            "Write in place (`cp`, `rsync --inplace`). To remove chunks: `-o rw,allow_remove`. "
            "To change "
            "the size: `-o rw,resize`."
        ),
    ),
    errno.EROFS: (
        (
            "The mount or the store is read-only, or the array's codecs cannot encode, as "
            "`zarrfs-note.txt` says."
        ),
        "Mount with `-o rw`. Archives, HTTP, references and files of other formats stay read-only.",
    ),
    errno.ETIMEDOUT: (
        "The store did not answer within `-o timeout`, retries included.",
        "Repeat; the data may be intact. Raise `-o timeout=` for a slow store.",
    ),
}


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
    table = _table(("option", "effect", "default"), rows)
    return "\n".join([_HEAD, _OPTIONS, table, f"{_wrapped(IGNORED_HELP)}\n"])


def open_options() -> str:
    library = {field.name for field in fields(SourceOptions)}
    rows = [
        (
            f"`{row.name}`",
            f"`-o {row.option}`" if row.option else f"`{row.command}`",
            f"`{row.option}`" if row.option in library else "",
            row.note,
        )
        for row in COUNTERPARTS
    ]
    heads = ("TensorStore", "zarrfs", "library", "note")
    return "\n".join([_HEAD, _OPEN_OPTIONS, _table(heads, rows)])


def errors() -> str:
    statuses = [
        (f"`{name}`", " ".join(paragraph.removeprefix("Exit status:").split()))
        for name, command, _ in _all_commands()
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n")
        if paragraph.startswith("Exit status:") and name != "zarrfs"
    ]
    told = set(ERRNOS.values())
    if told != set(_CAUSES):
        raise ValueError(f"causes and errors differ: {told ^ set(_CAUSES)}")
    rows = [
        (f"`{_name(number)}`", os.strerror(number), *_CAUSES[number])
        for number in sorted(told, key=_name)
    ]
    return "\n".join(
        [
            _HEAD,
            _ERRORS,
            _table(("command", "statuses"), statuses),
            _ERRNOS,
            _table(("number", "message of programs", "usual causes", "what to do"), rows),
        ]
    )


def _name(number: int) -> str:
    return "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]


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
