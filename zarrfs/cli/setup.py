"""``zarrfs setup``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click


@click.command("setup")
@click.option(
    "--user", is_flag=True, help="Install only the systemd unit for this user; needs no root."
)
@click.option(
    "--updatedb",
    is_flag=True,
    help="Also have updatedb, which fills the database of locate, leave mounts of zarrfs out.",
)
@click.option("--remove", is_flag=True, help="Remove what setup installed.")
@click.option(
    "--root",
    default="/",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Install below DIR instead of /, to build a package.",
)
@click.option(
    "--program",
    metavar="FILE",
    help="Command that units run.  [default: this one]",
)
def command(root: Path, program: str | None, *, user: bool, updatedb: bool, remove: bool) -> None:
    """Install the mount helper and the systemd units.

    As root: mount.zarrfs in /sbin, for "mount -t zarrfs" and /etc/fstab, and zarrfs@.service, which
    mounts the source that /etc/zarrfs/NAME.conf names.
    With --user: the same unit for this user, with ~/.config/zarrfs/NAME.conf.

    \b
    Examples:
      sudo zarrfs setup
      sudo zarrfs setup --updatedb
      zarrfs setup --user && systemctl --user daemon-reload
      zarrfs setup --remove

    Exit status: 0 done, 1 something is in the way or not allowed, 2 wrong usage.
    """
    from zarrfs.daemon.system.installation import Installation, find_program
    from zarrfs.daemon.system.updatedb import leave_out
    from zarrfs.errors import MountError

    if not user and root == Path("/") and os.geteuid() != 0:
        raise MountError("setup changes system directories: run it as root, or with --user")

    installation = Installation(find_program(program or sys.argv[0]), user, root)
    for path in installation.remove() if remove else installation.install():
        click.echo(f"{'removed' if remove else 'installed'} {path}")
    if user:
        return
    write = updatedb or remove
    if (file := leave_out(root, remove=remove, write=write)) is not None and write:
        click.echo(f"changed {file}")
    elif file is not None:
        click.echo(
            f"updatedb reads all mounts: {file} has no fuse.zarrfs in PRUNEFS; --updatedb adds it",
            err=True,
        )
    if not remove and (closed := installation.closed_to_others()) is not None:
        click.echo(
            f"only root can mount: {closed} is closed to other users, and {installation.program} "
            "needs it",
            err=True,
        )
