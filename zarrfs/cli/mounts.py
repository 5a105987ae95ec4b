"""``zarrfs mounts``."""

from __future__ import annotations

import json

import click


@click.command("mounts")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
def command(*, as_json: bool) -> None:
    """List all zarrfs mounts that you can see.

    Each line has mount point, source, mode (ro or rw), state and process. The state is alive; dead
    (the daemon was killed, and the next mount clears the mount point); hung; or private (it
    belongs to another user).

    Exit status: 0 done, 2 wrong usage.
    """
    from zarrfs.daemon.status import list_mounts

    mounts = list_mounts()
    if as_json:
        click.echo(json.dumps([mount.as_document() for mount in mounts], indent=2))
        return
    if not mounts:
        click.echo("nothing is mounted", err=True)
        return
    rows = [("MOUNTPOINT", "SOURCE", "MODE", "STATE", "PID"), *(m.as_row() for m in mounts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())
