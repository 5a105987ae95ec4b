"""``zarrfs info``."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from zarrfs.cli.storage_options import storage_options

if TYPE_CHECKING:
    from zarrfs.library.info import ArrayInfo, GroupInfo


@click.command("info")
@click.argument("source")
@click.option("--path", default="", metavar="PATH", help="Path of an array or group below SOURCE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Show at most N groups and arrays.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    metavar="N",
    help="Show N levels of groups and arrays.  [default: all]",
)
@click.option(
    "--plot",
    metavar="FILE",
    help="Also draw which chunks are stored, and their sizes, to FILE.svg or FILE.png.",
)
@storage_options
def command(
    source: str,
    path: str,
    nodes: int,
    depth: int | None,
    plot: str | None,
    storage_options: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    """Describe SOURCE, a Zarr array or hierarchy.

    \b
    Examples:
      zarrfs info data.zarr
      zarrfs info data.zarr --path images/raw
      zarrfs ls data.zarr --path images
      zarrfs info s3://bucket/data.zarr --storage-option anon=true
      zarrfs info data.zarr --json | jq .stored
      zarrfs info data.zarr --path images/raw --plot stored.svg

    For a group, it prints the tree of its members. "zarrfs tree" is the same command, and
    "zarrfs ls" is the same with --depth=1. For an array, it prints shape, data type,
    chunks, shards, codecs, attributes, how much is stored, and the files of a mount. A picture
    shows which chunks (or shards) are stored, over the last two axes of their grid.

    It requests at most 100000 stored objects and lists at most 200000, from a remote store 2000
    and 20000. "at least" means that there may be more.

    Exit status: 0 shown, 1 not found or not readable, 2 wrong usage. An array that zarrfs
    cannot serve is shown with the reason.
    """
    from zarrfs.library import info

    options = info.InfoOptions(path, nodes, depth, storage_options=storage_options)
    if plot is None:
        found = info.info(source, options)
    else:
        from zarrfs.library.plot.figure import CELLS

        kind = _kind(plot)
        found = info.info(source, dataclasses.replace(options, cells=CELLS))
        _draw(source, found, plot, kind)
    if as_json:
        click.echo(json.dumps(info.as_json(found), indent=2))
        return
    from zarrfs.cli.info_text import info_text

    encoding = sys.stdout.encoding or "ascii"
    text = info_text(source, found, unicode="utf" in encoding.lower(), picture=plot is None)
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


def _kind(plot: str) -> str:
    kind = PurePath(plot).suffix.lower()
    if kind not in (".svg", ".png"):
        raise click.UsageError(f"--plot writes FILE.svg or FILE.png, not {plot!r}.")
    return kind


def _draw(source: str, found: ArrayInfo | GroupInfo, plot: str, kind: str) -> None:
    from zarrfs.library.plot.figure import figure
    from zarrfs.library.plot.png import png
    from zarrfs.library.plot.svg import svg
    from zarrfs.store.redact import shown_url

    drawn = figure(shown_url(source), found)
    content = svg(drawn).encode() if kind == ".svg" else png(drawn)
    try:
        Path(plot).write_bytes(content)
    except OSError as error:
        raise click.FileError(plot, error.strerror) from error
