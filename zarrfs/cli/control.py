"""``zarrfs control``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

ACTIONS = ("flush", "drop", "memory=")
"""As they are typed; a value follows the last one."""


@click.command("control")
@click.argument("mountpoint")
@click.argument("actions", nargs=-1, required=True, metavar="flush|drop|memory=SIZE…")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, for programs.")
def command(mountpoint: str, actions: tuple[str, ...], *, as_json: bool) -> None:
    """Change the running mount at MOUNTPOINT.

    \b
    flush         store all changes now, as fsync does, for every array of the mount
    drop          drop cached chunks, shard indexes and the kernel's pages of all files;
                  changes that are not stored yet stay
    memory=SIZE   change the memory budget, with a unit K, M or G; at least 16M

    Several actions run in the given order, and the first that fails ends the command. Only root
    and the user who mounted it can control a mount. "memory" fails if an array that is open needs
    more memory than SIZE. Files that are open keep their plan for scans; open them again after
    you raise the budget. "drop" leaves -o disk_cache alone, which other mounts share.

    \b
    Examples:
      zarrfs control /mnt/data flush
      zarrfs control /mnt/data drop memory=2G

    Exit status: 0 done, 1 not mounted, not allowed, not all stored or too little memory,
    2 wrong usage.
    """
    from zarrfs.daemon.control import control

    requests = [_request(action) for action in actions]
    done = []
    for request in requests:
        answer = control(mountpoint, request)
        done.append({"action": request["command"], **answer})
        if not as_json:
            click.echo(_text(str(request["command"]), answer))
    if as_json:
        click.echo(json.dumps({"mountpoint": mountpoint, "done": done}, indent=2))


def _request(action: str) -> Mapping[str, object]:
    name, equals, value = action.partition("=")
    if name == "memory" and equals:
        from zarrfs.daemon.options.option_values import memory

        try:
            return {"command": name, "size": memory(value)}
        except ValueError as error:
            raise click.UsageError(f"memory={value} {error}.") from error
    if action not in ACTIONS or equals:
        if name == "memory":
            raise click.UsageError("memory needs a size, such as memory=2G.")
        raise click.UsageError(f"No such action {action!r}: flush, drop or memory=SIZE.")
    return {"command": name}


def _text(action: str, answer: Mapping[str, Any]) -> str:
    from zarrfs.cli.sizes import size_text

    if action == "flush":
        return f"flush: {size_text(answer['stored_bytes'])} stored"
    if action == "drop":
        return f"drop: {size_text(answer['freed_bytes'])} freed"
    return f"memory: {size_text(answer['memory'])} (before: {size_text(answer['before'])})"
