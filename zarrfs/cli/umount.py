"""``zarrfs umount``."""

from __future__ import annotations

import click


@click.command("umount")
@click.argument("mountpoint", nargs=-1, metavar="MOUNTPOINT…")
@click.option("--all", "everything", is_flag=True, help="Unmount all mounts that are yours.")
@click.option(
    "-l",
    "--lazy",
    is_flag=True,
    help="Remove a busy mount now; its daemon ends when the last program closes its files.",
)
def command(mountpoint: tuple[str, ...], *, everything: bool, lazy: bool) -> None:
    """Unmount each MOUNTPOINT and wait until its daemon has ended.

    The daemon of a writable mount first stores all changes; the command fails if it cannot. On a
    terminal, the command shows how much is left. If a mount is busy, the command names the
    programs that use it. If one fails, the others are unmounted nevertheless. With --all, it
    unmounts all mounts that "zarrfs mounts" lists, the latest first, except private ones.

    Exit status: 0 unmounted, all changes stored, 1 not mounted, busy, not all changes stored or
    daemon not ended, 2 wrong usage.
    """
    from zarrfs.daemon.status import list_mounts
    from zarrfs.errors import ZarrfsError

    if everything == bool(mountpoint):
        raise click.UsageError("Name mount points, or give --all.")
    if everything:
        seen = reversed(list_mounts())
        mountpoint = tuple(mount.mountpoint for mount in seen if mount.state != "private")
    failed: ZarrfsError | None = None
    for place in mountpoint:
        try:
            _umount(place, lazy=lazy)
        except ZarrfsError as error:
            if failed is not None:
                click.echo(f"zarrfs: {failed}", err=True)
            failed = error
    if failed is not None:
        raise failed


def _umount(place: str, *, lazy: bool) -> None:
    from zarrfs.cli.progress import ProgressBar
    from zarrfs.daemon.umount import umount

    bar = ProgressBar("storing changes")
    most = 0

    def progress(left: int) -> None:
        nonlocal most
        if (most := max(most, left)) > 0:
            bar(most - left, most)

    try:
        umount(place, lazy=lazy, progress=progress)
    finally:
        bar.interrupt()
