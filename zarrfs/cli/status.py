"""``zarrfs status``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from zarrfs.cli.sizes import size_text
from zarrfs.counted import counted, printable

if TYPE_CHECKING:
    from zarrfs.daemon.status import Status

_ERRORS = 5
_SLOW = 5
_SLOW_S = 0.1


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
    text = "\n".join(status_lines(now, before))
    if clear:
        # To the top, and what was longer before goes: no flicker.
        text = "\x1b[H" + text.replace("\n", "\x1b[K\n") + "\x1b[K\n\x1b[J"
        click.echo(text, nl=False)
    else:
        click.echo(text + ("\n" if before else ""))


def status_lines(now: Status, before: Status | None) -> Iterator[str]:
    """Rates are since ``before``, or without it since the mount began."""
    stats, config = now.stats, now.config
    mode = "read and write" if now.writable else "read-only"
    yield f"{printable(now.mountpoint)}: {printable(config['source'])} ({mode})"
    up = timedelta(seconds=int(stats["uptime_seconds"]))
    yield f"  process {config['pid']}, up {up}, {counted(stats['arrays'], 'array')} in memory, " + (
        counted(stats["open_files"], "open file")
    )
    yield from _traffic(now, before)
    yield from _cache(now)
    if now.writable:
        journal = config["options"].get("journal")
        yield f"  {'to store':<9}{size_text(stats['dirty_bytes'])}; journal {journal}"
    yield from _trouble(now)
    yield from _slow(now)
    yield from _errors(now)


def _traffic(now: Status, before: Status | None) -> Iterator[str]:
    stats, per_second = now.stats, now.rates(before)

    def row(name: str, total: int, requests: int, rate: str) -> str:
        speed = f"{size_text(per_second.get(rate, 0.0))}/s"
        return f"  {name:<9}{speed:<16}{size_text(total)} in {counted(requests, 'request')}"

    yield row("read", stats["reads"]["bytes"], stats["reads"]["count"], "read")
    store = stats["store"]
    yield row("fetched", store["read_bytes"], store["requests"], "fetched")
    if now.writable:
        yield row("written", stats["writes"]["bytes"], stats["writes"]["count"], "written")
        speed = f"{size_text(per_second.get('stored', 0.0))}/s"
        yield f"  {'stored':<9}{speed:<16}{size_text(store['written_bytes'])}"


def _cache(now: Status) -> Iterator[str]:
    cache, memory = now.stats["cache"], now.stats["memory"]
    asked = cache["hits"] + cache["misses"] + cache["shared"]
    hits = f"{cache['hits'] / asked:.0%} hits" if asked else "not asked yet"
    yield (
        f"  {'cache':<9}{hits:<16}{counted(memory['chunks'], 'chunk')}, "
        f"{size_text(memory['used'])} of {size_text(memory['budget'])}"
    )


def _trouble(now: Status) -> Iterator[str]:
    if (trouble := now.stats["store"].get("trouble")) is not None:
        since = time.strftime("%H:%M:%S", time.localtime(trouble["since"]))
        what = f"{printable(trouble['key'])}: {printable(trouble['reason'])}"
        yield f"  {'trouble':<9}since {since} the store is asked again: {what}"


def _slow(now: Status) -> Iterator[str]:
    slow = [key for key in now.stats["store"]["slowest"] if key["seconds"] >= _SLOW_S]
    for name, key in zip(["slow", *[""] * _SLOW], slow[:_SLOW], strict=False):
        yield f"  {name:<9}{key['seconds']:.2f} s  {printable(key['key'])}"


def _errors(now: Status) -> Iterator[str]:
    errors = now.stats["errors"]
    yield f"  {'errors':<9}{errors['count']}"
    for error in errors["last"][-_ERRORS:]:
        when = time.strftime("%H:%M:%S", time.localtime(error["time"]))
        yield f"    {when} {printable(error['key'])}: {printable(error['reason'])}"
