"""``zarrfs resize``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

import click

from zarrfs.cli.options import path_option, source_options
from zarrfs.counted import counted
from zarrfs.errors import UsageError, ZarrfsError

if TYPE_CHECKING:
    from zarrfs.format.chunk_grid import Shape
    from zarrfs.library.source import SourceOptions

# Chunks that would lose something are counted up to this number.
_MOST_COUNTED = 10_000
_THREADS = 8


@click.command("resize")
@click.argument("source")
@click.option(
    "--shape",
    required=True,
    metavar="N,N,…",
    help="Elements along each axis; - keeps the length of an axis.",
)
@path_option
@click.option("--force", is_flag=True, help="Drop stored chunks beyond the new shape.")
@click.option(
    "-n", "--dry-run", is_flag=True, help="Say what would be dropped, and change nothing."
)
@source_options
def command(
    source: str,
    shape: str,
    path: str,
    *,
    force: bool,
    dry_run: bool,
    source_options: SourceOptions,
) -> int:
    """Change the shape of the array SOURCE, along any axis.

    \b
    Examples:
      zarrfs resize data.zarr --shape 2000,-,-
      zarrfs resize --dry-run data.zarr --shape 100,500,500
      zarrfs resize --force data.zarr --path raw --shape 100,500,500

    New elements read as the fill value. Elements beyond the new shape are dropped, which needs
    --force if any of their chunks is stored: zarrfs deletes chunks that lie wholly beyond the edge,
    and sets the rest of the chunks across the edge to the fill value. The metadata change in one
    step, so the array always has the old shape or the new one. If the command is interrupted,
    chunks beyond the edge may remain. They do no harm; the same command, or growing the array with
    zarrfs, removes them.

    Unmount the array first if it is mounted for writing: a mount keeps the shape that it read.

    Exit status: 0 resized, 1 not resized or not all of the rest dropped, 2 wrong usage.
    """
    from zarrfs.array.making.resize import Resize, ResizeConfig
    from zarrfs.cli.progress import ProgressBar
    from zarrfs.cli.sizes import shape_text
    from zarrfs.library.source import find_array, open_source

    store = open_source(source, source_options)
    try:
        node, metadata = find_array(store, path, source_options, writable=True)
        wanted = _shape(shape, metadata.shape)
        _check_not_mounted(store.local_path)
        progress = ProgressBar("resize", "chunks")
        total = 0
        config = ResizeConfig(
            memory=source_options.memory_bytes,
            threads=source_options.loaders or _THREADS,
            store_fill=source_options.store_fill,
            cleared=lambda done: progress(done, max(done, total)),
        )
        resize = Resize(
            *(store, node.path, wanted, config),
            expected=metadata.shape,
            zarr_format=metadata.zarr_format,
        )
        change = f"{source}: {shape_text(resize.old)} to {shape_text(resize.new)}"
        with _named(source):
            lost = list(islice(resize.lost_objects(), _MOST_COUNTED)) if resize.loses_data else []
        total = len(lost)
        if dry_run:
            click.echo(f"would resize {change}; {_in_words(lost)}")
            return 0
        if lost and not force:
            raise ZarrfsError(f"{source}: {_in_words(lost)}; --force drops them")
        with progress, _named(source):
            done = resize.run()
    finally:
        store.close()
    if done.problems:
        raise ZarrfsError(
            f"resized {change}, but could not drop {counted(len(done.problems), 'stored object')} "
            f"beyond the new edge: {done.problems[0]}"
        )
    click.echo(f"resized {change}")
    return 0


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Has an error about an object say that the array is what it was."""
    try:
        yield
    except ZarrfsError as error:
        raise ZarrfsError(f"{source} is not resized: {error}") from error


def _shape(text: str, old: Shape) -> Shape:
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    if len(words) != len(old):
        lengths = counted(len(words), "length")
        raise UsageError(f"--shape has {lengths}, and the array has rank {len(old)}")
    if not all(word == "-" or (word.isascii() and word.isdigit()) for word in words):
        raise UsageError(f"--shape {text!r} is not a list of whole numbers such as 100,200")
    return tuple(
        extent if word == "-" else int(word) for word, extent in zip(words, old, strict=True)
    )


def _in_words(lost: list[tuple[str, bool]]) -> str:
    if not lost:
        return "nothing that is stored would be dropped"
    least = "at least " if len(lost) == _MOST_COUNTED else ""
    whole = sum(whole for _, whole in lost)
    reach = "reaches" if len(lost) == 1 else "reach"
    objects = counted(len(lost), "stored object")
    return f"{least}{objects} {reach} beyond the new shape, {whole} wholly"


def _check_not_mounted(local_path: str | None) -> None:
    """Raises ZarrfsError for a source that a mount of this host writes to."""
    import os

    from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, mounts

    if local_path is None:
        return
    real = os.path.realpath(local_path)
    for entry in mounts(FILE_SYSTEM_TYPE):
        theirs = os.path.realpath(entry.source)
        if "rw" in entry.options and os.path.commonpath((real, theirs)) in (real, theirs):
            raise ZarrfsError(f"{local_path}: is mounted for writing at {entry.path}: unmount it")
