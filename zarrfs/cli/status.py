"""``zarrfs status``."""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from zarrfs.daemon.status import Status


@click.command("status")
@click.argument("mountpoint")
@click.option("-w", "--watch", is_flag=True, help="Repeat until Ctrl-C.")
@click.option(
    "-i",
    "--interval",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    help="Time between two repeats, with --watch.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document; with --watch, one a line."
)
def command(mountpoint: str, interval: float, *, watch: bool, as_json: bool) -> None:
    """Show the state of the mount at MOUNTPOINT.

    It shows how much programs read and write, how many chunks came from the cache, changes that
    are not stored yet and their journal, the slowest requests to the store, and the last errors.
    Rates are means since the last repeat, or without --watch since the mount began.

    \b
    Examples:
      zarrfs status /mnt/data
      zarrfs status --watch /mnt/data
      zarrfs status --json /mnt/data | jq .stats.dirty_bytes

    Exit status: 0 done, 1 not mounted, dead or hung, 2 wrong usage.
    """
    # ^C is how a watch ends.
    with suppress(KeyboardInterrupt) if watch else nullcontext():
        _look(mountpoint, interval, watch=watch, as_json=as_json)


def _look(mountpoint: str, interval: float, *, watch: bool, as_json: bool) -> None:
    from zarrfs.daemon.status import Status

    before = None
    while True:
        now = Status.of(mountpoint)
        if as_json:
            click.echo(json.dumps(now.as_document(), indent=None if watch else 2))
        else:
            _show(now, before, clear=watch and sys.stdout.isatty())
        if not watch:
            return
        before = now
        time.sleep(interval)


def _show(now: Status, before: Status | None, *, clear: bool) -> None:
    from zarrfs.cli.status_text import status_lines

    text = "\n".join(status_lines(now, before))
    if clear:
        # To the top, and what was longer before goes: no flicker.
        text = "\x1b[H" + text.replace("\n", "\x1b[K\n") + "\x1b[K\n\x1b[J"
        click.echo(text, nl=False)
    else:
        click.echo(text + ("\n" if before else ""))
