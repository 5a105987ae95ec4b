"""``zarrfs diff``."""

from __future__ import annotations

import json

import click


@click.command("diff")
@click.argument("mountpoint")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
def command(mountpoint: str, *, as_json: bool) -> None:
    """List what the overlay of the mount at MOUNTPOINT holds.

    A mount with -o overlay=DIR keeps changes in DIR and leaves its source as it is. Each line has
    a stored object: M, its key and its size where it was changed or is new, D and its key where it
    was removed. At most 1000 are listed. Changes that programs made until now are included.

    \b
    Examples:
      zarrfs mount -o rw,overlay=/var/tmp/mine https://example.org/a.zarr /mnt/a
      zarrfs diff /mnt/a

    Exit status: 0 done, 1 not mounted, not allowed or no overlay, 2 wrong usage.
    """
    from zarrfs.cli.sizes import size_text
    from zarrfs.counted import counted, printable
    from zarrfs.daemon.control import control

    found = control(mountpoint, {"command": "diff"})
    if as_json:
        click.echo(json.dumps({"mountpoint": mountpoint, **found}, indent=2))
        return
    for key, size in found["changes"]:
        click.echo(
            f"D {printable(key)}" if size is None else f"M {printable(key)}  {size_text(size)}"
        )
    click.echo(f"{counted(found['objects'], 'object')}, {size_text(found['bytes'])}", err=True)
