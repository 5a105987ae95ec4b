"""The command ``zarrfs``. Each subcommand is loaded when it is used, so that all start fast."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import NoReturn

import click

from zarrfs import __version__
from zarrfs.errors import UsageError, ZarrfsError
from zarrfs.format.codecs.own_process import own_process

EXIT_ERROR = 1
EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130
_SUGGESTIONS = 2
COMPLETE = "_ZARRFS_COMPLETE"  # set by a shell that wants to know what may come next

# Name, and the line that `zarrfs --help` shows without loading the module of that name.
_COMMANDS = {
    "mount": "Mount a Zarr array or hierarchy as ordinary files.",
    "umount": "Unmount, and wait until all changes are stored.",
    "mounts": "List all mounts.",
    "status": "Show the state of a mount.",
    "metrics": "Print the metrics of all mounts.",
    "control": "Store changes, drop caches or change the memory of a mount.",
    "diff": "List the changes that an overlay holds.",
    "commit": "Store the changes of an overlay in the source.",
    "info": "Describe a Zarr array or hierarchy (also: tree, ls).",
    "create": "Create a Zarr array.",
    "resize": "Change the shape of a Zarr array.",
    "copy": "Copy an array or hierarchy, into other chunks, codecs or stores.",
    "export": "Write an array to a flat file or a pipe.",
    "import": "Write a flat file or a pipe to an array.",
    "header": "Print the header that opens an array in other programs.",
    "check": "Decode all chunks, list damage, and repair what can be repaired.",
    "setup": "Install the mount helper and the systemd units.",
}
# Other names, and what they stand for.
_ALIASES = {"tree": ("info",), "ls": ("info", "--depth=1")}
# Modules of commands whose names are keywords of Python.
_MODULES = {"import": "import_"}

if COMPLETE in os.environ:
    from zarrfs.cli import completion


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"zarrfs.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        assert isinstance(command, click.Command)
        if COMPLETE in os.environ:
            completion.prepare(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [*_ALIASES.get(args[0], args[:1]), *args[1:]]
        name = args[0]
        if name in _COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        import difflib

        near = difflib.get_close_matches(name, (*_COMMANDS, *_ALIASES), n=_SUGGESTIONS)
        raise click.UsageError(f"No such command {name!r}.{_did_you_mean(near)}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def cli() -> None:
    """Mount Zarr arrays as ordinary files.

    \b
      zarrfs mount data.zarr /mnt/data     then use /mnt/data/…/array.bin
      zarrfs umount /mnt/data

    Programs without Zarr support can then read and write the arrays: dd, mmap, NumPy, Octave,
    Fortran, GDAL and others.

    Exit status: 0 done, 1 failed, 2 wrong usage. Every error is one line on standard error.
    """


def main() -> NoReturn:
    """Runs the command line and exits."""
    own_process()
    sys.exit(run(cli, "zarrfs", _arguments(sys.argv[1:])))


def _arguments(given: list[str]) -> list[str]:
    """Translates the call of mount.fuse3, ``zarrfs SOURCE DIR -o OPTIONS``, to a subcommand."""
    if len(given) != 4 or given[2] != "-o" or given[0] in _COMMANDS:
        return given
    from zarrfs.cli.mount_caller import asked_to_write

    asked = [] if asked_to_write(given[1]) else ["-o", "ro"]
    return ["mount", *given[2:], *asked, "--", *given[:2]]


def run(
    command: click.Command,
    name: str,
    arguments: list[str] | None = None,
    *,
    usage: int = EXIT_USAGE,
    failed: int = EXIT_ERROR,
) -> int:
    """Runs ``command`` as the program ``name``; its exit status. Errors are one line.

    arguments : None for those of this process.
    usage, failed : the exit status of wrong usage and of everything else that fails.
    """
    _open_standard_streams()
    try:
        result = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return usage
    except click.UsageError as error:
        message = error.format_message()
        if isinstance(error, click.NoSuchOption):
            message = f"No such option {error.option_name!r}.{_did_you_mean(error.possibilities)}"
        path = error.ctx.command_path if error.ctx else name
        # Click does not say of which command an option lacks its value.
        if error.ctx is None and arguments and arguments[0] in _COMMANDS:
            path = f"{name} {arguments[0]}"
        return _fail(name, f"{message} (see {path} --help)", usage)
    except click.ClickException as error:
        return _fail(name, error.format_message(), failed)
    except ZarrfsError as error:
        message = as_typed(str(error), sys.argv[1:] if arguments is None else arguments)
        return _fail(name, message, usage if isinstance(error, UsageError) else failed)
    except OSError as error:
        # The rest of a standard output on a full disk would fail once more at the exit.
        with suppress(OSError):
            sys.stdout.close()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(name, f"{where}{error.strerror or error}", failed)
    except (KeyboardInterrupt, click.Abort):
        return _fail(name, "interrupted", _EXIT_INTERRUPTED)
    return result if isinstance(result, int) else 0


def as_typed(message: str, arguments: Iterable[str]) -> str:
    """A message in which local sources are named as in the arguments, instead of by their URLs."""
    if "file://" not in message:
        return message  # no argument is looked at, which may be a mount that hangs
    # The longest first: one directory may lie in another.
    for word in sorted(arguments, key=lambda word: len(os.path.abspath(word)), reverse=True):
        if word.startswith("-") or "://" in word or not word:
            continue
        for path in (os.path.abspath(word), os.path.realpath(word)):
            source = rf"(?<!::)file://{re.escape(path)}(?:/(?=[:\s]|$))?(?![\w.-])"
            message = re.sub(source, word.replace("\\", r"\\"), message)
    return message


def _did_you_mean(names: Iterable[str] | None) -> str:
    """A question that follows an error; "" without names."""
    listed = " or ".join(map(repr, islice(names or (), _SUGGESTIONS)))
    return f" Did you mean {listed}?" if listed else ""


def _open_standard_streams() -> None:
    """Where they are closed, what is opened next must not take their place.

    Who detaches from a terminal, and libraries that print, would write over it. In this order
    each gets its own number, which is the lowest that is free.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - stays


def _fail(name: str, message: str, status: int) -> int:
    """Prints ``message`` as the one line that it has to be."""
    click.echo(f"{name}: {' '.join(message.split())}", err=True)
    return status
