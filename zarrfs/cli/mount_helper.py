"""``mount.zarrfs``: what mount(8), fstab and systemd's mount units call.

mount(8) describes how: ``mount.zarrfs SOURCE DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click

from zarrfs.errors import UsageError

# mount(8), "EXIT STATUS".
_EXIT_USAGE = 1
_EXIT_FAILED = 32


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source")
@click.argument("directory")
@click.option("-o", "options", multiple=True, metavar="OPTION[=VALUE],…", help="Mount options.")
@click.option("-f", "fake", is_flag=True, help="Do everything but mount.")
@click.option("-v", "verbose", is_flag=True, help="Say what was mounted.")
@click.option("-s", is_flag=True, hidden=True, expose_value=False)
@click.option("-n", is_flag=True, hidden=True, expose_value=False)
@click.option("-N", hidden=True, expose_value=False)
@click.option("-t", hidden=True, expose_value=False)
def command(
    source: str, directory: str, options: tuple[str, ...], *, fake: bool, verbose: bool
) -> None:
    """Mount SOURCE at DIRECTORY; "zarrfs mount --help" lists the options."""
    from zarrfs.cli.mount_caller import asked_to_write
    from zarrfs.daemon.mount import mount
    from zarrfs.daemon.options.option_parser import parse_options
    from zarrfs.daemon.request import MountRequest
    from zarrfs.daemon.system.process_title import hide
    from zarrfs.store.redact import shown_url

    if "remount" in ",".join(options).split(","):
        raise UsageError("a mount cannot be changed: unmount it and mount it again")
    hide({source: shown_url(source)})
    if not asked_to_write(directory):
        options = (*options, "ro")
    request = MountRequest(source, directory, parse_options(options))
    if not fake:
        mount(request)
        if verbose:
            click.echo(f"{source} mounted on {directory}.")


def main() -> NoReturn:
    """Runs the helper and exits."""
    from zarrfs.cli.main import run

    sys.exit(run(command, Path(sys.argv[0]).name, usage=_EXIT_USAGE, failed=_EXIT_FAILED))
