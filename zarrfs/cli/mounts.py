"""``zarrfs mounts``."""

from __future__ import annotations

import json

import click


@click.command("mounts")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, for programs.")
def command(*, as_json: bool) -> None:
    """List what zarrfs has mounted, as far as you can see it.

    For each mount: where, what, whether it can be written to, the process, and its state:
    alive, dead (the daemon was killed; the next mount clears it away), hung, or private
    (another user's, and not for others).

    Exit status: 0 done, 2 wrong usage.
    """
    from zarrfs.daemon.life.mounted import list_mounts

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
