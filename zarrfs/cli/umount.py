"""``zarrfs umount``."""

from __future__ import annotations

import sys

import click


@click.command("umount")
@click.argument("mountpoint")
@click.option(
    "-l",
    "--lazy",
    is_flag=True,
    help="Unmount although it is in use: the name goes now, the daemon with the last user.",
)
def command(mountpoint: str, *, lazy: bool) -> None:
    """Unmount MOUNTPOINT and wait until its daemon has ended.

    A writable mount stores all changes before it ends; it says so when that fails. On a
    terminal it shows how much is left.

    Exit status: 0 unmounted, all stored and ended, 1 not mounted, in use (by whom is said
    where that can be seen), not all stored or not ended, 2 wrong usage.
    """
    from zarrfs.cli.sizes import size_text
    from zarrfs.daemon.umount import umount

    shown = False

    def progress(left: int) -> None:
        nonlocal shown
        if left or shown:
            shown = True
            click.echo(f"\rstoring changes: {size_text(left)} left\x1b[K", nl=False, err=True)

    try:
        umount(mountpoint, lazy=lazy, progress=progress if sys.stderr.isatty() else _silent)
    finally:
        if shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def _silent(_left: int) -> None:
    pass
