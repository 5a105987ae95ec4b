"""The command ``zarrfs``. Each subcommand is loaded when it is used, so that all start fast."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

import click

from zarrfs import __version__
from zarrfs.errors import UsageError, ZarrfsError

EXIT_ERROR = 1
EXIT_USAGE = 2
_EXIT_INTERRUPTED = 130

# Name, and the line that `zarrfs --help` shows without loading the module of that name.
_COMMANDS = {
    "mount": "Mount a Zarr array or hierarchy as ordinary files.",
    "umount": "Unmount, and wait until the daemon has ended.",
    "export": "Write an array to a flat file or a pipe.",
    "import": "Write a flat file or a pipe to an array.",
    "check": "Read everything, tell what is damaged, and save what can be.",
}
# Of those whose name no module can have.
_MODULES = {"import": "import_"}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"zarrfs.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        assert isinstance(command, click.Command)
        return command

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

    Programs that know nothing of Zarr can then read and write the arrays: dd, mmap, NumPy, Octave,
    Fortran, GDAL and others.

    Exit status: 0 done, 1 failed, 2 wrong usage. What went wrong is one line on standard
    error.
    """


def main() -> NoReturn:
    """Runs the command line and exits."""
    sys.exit(_run())


def _run() -> int:
    try:
        result = cli.main(prog_name="zarrfs", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "zarrfs"
        return _fail(f"{error.format_message()} (see {command} --help)", EXIT_USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_ERROR)
    except UsageError as error:
        return _fail(str(error), EXIT_USAGE)
    except ZarrfsError as error:
        return _fail(str(error), EXIT_ERROR)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", _EXIT_INTERRUPTED)
    return result if isinstance(result, int) else 0


def _fail(message: str, status: int) -> int:
    """Prints ``message`` as the one line that it has to be."""
    click.echo(f"zarrfs: {' '.join(message.split())}", err=True)
    return status
