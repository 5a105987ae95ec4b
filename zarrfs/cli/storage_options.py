"""The option ``--storage-option`` of every command that opens a store."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click

from zarrfs.errors import UsageError


def _read(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> Mapping[str, object]:
    if texts:
        from zarrfs.daemon.system.process_title import hide

        hide(dict.fromkeys(texts, "***"))
    found: dict[str, object] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name or not separator:
            # The text may be a secret.
            raise UsageError("a --storage-option is not of the form NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


storage_options = click.option(
    "--storage-option",
    "storage_options",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_read,
    help="Argument for the fsspec file system of a remote store, as JSON or plain text; may be "
    "repeated. Other users may see it in the process list for a moment: keep secrets in the "
    "configuration of the service, or for mounts in the file of -o storage_options.",
)
"""Decorates a command, which gets ``storage_options``, a mapping."""
