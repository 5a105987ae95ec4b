"""``zarrfs commit``."""

from __future__ import annotations

import json

import click


@click.command("commit")
@click.argument("mountpoint")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
def command(mountpoint: str, *, as_json: bool) -> int:
    """Store what the overlay of the mount at MOUNTPOINT holds in its source.

    A mount with -o overlay=DIR keeps changes in DIR and leaves its source as it is. "zarrfs diff"
    lists them. A stored object leaves the overlay. A stored object that was changed in the source
    too, since its first change here, stays in the overlay and is named. So does an array with
    another size here where its metadata stay, or where the source encodes it anew. Chunks are
    stored before metadata. The mount goes on meanwhile.

    Exit status: 0 all stored, 1 not mounted, not allowed, no overlay or not all stored, 2 wrong
    usage.
    """
    from zarrfs.counted import counted, printable
    from zarrfs.daemon.control import control

    done = control(mountpoint, {"command": "commit"})
    if as_json:
        click.echo(json.dumps({"mountpoint": mountpoint, **done}, indent=2))
    else:
        click.echo(f"{counted(done['stored'], 'object')} stored, {done['removed']} removed")
        for key, reason in done["kept"].items():
            click.echo(f"zarrfs: not stored: {printable(key)}: {printable(reason)}", err=True)
        if (more := done["kept_objects"] - len(done["kept"])) > 0:
            click.echo(f"zarrfs: and {more} more", err=True)
    return 1 if done["kept_objects"] else 0
