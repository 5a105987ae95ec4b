"""``zarrfs umount``."""

from __future__ import annotations

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

    A writable mount stores all changes before it ends; it says so when that fails.

    Exit status: 0 unmounted, all stored and ended, 1 not mounted, in use (by whom is said
    where that can be seen), not all stored or not ended, 2 wrong usage.
    """
    from zarrfs.daemon.umount import umount

    umount(mountpoint, lazy=lazy)
