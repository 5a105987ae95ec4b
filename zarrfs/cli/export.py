"""``zarrfs export``."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from zarrfs.cli.options import Flat, engine_options, flat_options, source_options
from zarrfs.errors import UsageError
from zarrfs.views.headers.registry import FORMATS, GROUP_FORMATS

if TYPE_CHECKING:
    from zarrfs.library.engine import EngineConfig
    from zarrfs.library.source import SourceOptions

_FORMATS = (*(name for name, row in FORMATS.items() if not row.beside), *GROUP_FORMATS)
# As of a program that SIGPIPE ends.
_EXIT_CLOSED = 141


@click.command("export")
@click.argument("source")
@click.argument("file")
@flat_options(
    "bin",
    *_FORMATS,
    default="by the name of FILE; bin for .bin, .raw, .dat, .img, .data and no extension",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep an incomplete file after a failure, and continue with it.",
)
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option(
    "--fill-missing/--no-fill-missing",
    default=True,
    help="Whether a chunk that is not stored reads as the fill value; else it is an error. "
    "[default: fill-missing]",
)
@engine_options
@source_options
def command(
    source: str,
    file: str,
    *,
    flat: Flat,
    resume: bool,
    overwrite: bool,
    fill_missing: bool,
    engine: EngineConfig,
    source_options: SourceOptions,
) -> int:
    """Write the elements of the array SOURCE to FILE, or for "-" to standard output, which
    must not be a terminal.

    FILE gets the bytes of array.bin in a mount; a FILE named *.npy, *.tif, *.h5 and so on gets
    those of array.npy, array.tif, array.h5. FILE named *.ome.tif gets the image.ome.tif of the
    group SOURCE; --format names the other files of groups. *.h5 and *.nc keep the most of what is
    known of an array: names of axes, units, attributes. *.npy keeps shape and type. Chunks are
    decoded in parallel. FILE appears when it is complete; after a failure it is unchanged. On a
    terminal, a bar shows the progress.

    \b
    Examples:
      zarrfs export data.zarr data.npy
      zarrfs export image.zarr/0 image.tif
      zarrfs export image.zarr image.ome.tif
      zarrfs export data.zarr/temperature t.bin --order F --byteorder big
      zarrfs export s3://bucket/data.zarr part.npy --region 0:100,:,7
      zarrfs export --resume https://example.org/data.zarr data.npy
      zarrfs export data.zarr - | gzip > data.bin.gz

    With --resume, elements go to FILE.zarrfs-part, and FILE.zarrfs-part.json records the progress;
    the same command continues there. The array must not change in between.

    Exit status: 0 all written, 1 failed, 2 wrong usage, 141 the reader of standard output has
    gone away.
    """
    from zarrfs.cli.progress import ProgressBar
    from zarrfs.library.transfer.exporting import export_array
    from zarrfs.library.transfer.flat_form import by_extension
    from zarrfs.library.transfer.group_export import export_group
    from zarrfs.library.transfer.output_file import OutputClosed
    from zarrfs.library.transfer.transfer import TransferConfig

    if _is_terminal(file):
        where = "standard output" if file == "-" else file
        raise UsageError(f"{where} is a terminal: name a file, or pipe it to a program")
    options = replace(source_options, fill_missing=fill_missing)
    form = flat.form(file, by_extension)
    with ProgressBar("export") as progress:
        config = TransferConfig(flat.path, flat.region, resume, options, engine, progress)
        try:
            if form.container in GROUP_FORMATS:
                if flat.region or flat.order is not None or flat.byteorder is not None:
                    raise UsageError("a group's file takes no --region, --order and --byteorder")
                export_group(source, file, form.container, config, overwrite=overwrite)
            else:
                export_array(source, file, form, config, overwrite=overwrite)
        except OutputClosed:
            return _EXIT_CLOSED
    return 0


def _is_terminal(file: str) -> bool:
    """Whether elements would appear on a terminal, also as /dev/stdout or /dev/tty."""
    if file == "-":
        return sys.stdout.isatty()
    try:
        if not stat.S_ISCHR(os.stat(file).st_mode):
            return False
        fd = os.open(file, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.isatty(fd)
    finally:
        os.close(fd)
