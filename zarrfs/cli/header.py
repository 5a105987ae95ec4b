"""``zarrfs header``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Literal

import click

from zarrfs.cli.storage_options import storage_options
from zarrfs.views.headers.registry import FORMATS


@click.command("header")
@click.argument("source")
@click.option(
    "--format",
    "container",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="Whose header: what it is a header for is in the name of the file, array.FORMAT.",
)
@click.option("--path", default="", metavar="PATH", help="Of the array within a hierarchy.")
@click.option(
    "--data-file",
    default="array.bin",
    show_default=True,
    metavar="NAME",
    help="Name of the file with the elements, for a header that stands beside it.",
)
@click.option(
    "--byteorder",
    type=click.Choice(["little", "big"]),
    default="little",
    show_default=True,
    help="Byte order of the elements.",
)
@click.option(
    "--order",
    type=click.Choice(["C", "F"]),
    default="C",
    show_default=True,
    help="C: the last axis is fastest; F: the first (Fortran, MATLAB).",
)
@storage_options
def command(
    source: str,
    *,
    container: str,
    path: str,
    data_file: str,
    byteorder: Literal["little", "big"],
    order: Literal["C", "F"],
    storage_options: Mapping[str, object],
) -> None:
    """Print the header that opens the elements of the array SOURCE in other programs.

    The same bytes that a mount shows as array.nhdr, or before the elements of array.npy. With
    what "zarrfs export" writes, or beside a file of one's own, a program opens it as it is.

    \b
    Examples:
      zarrfs header --format mhd --data-file brain.raw brain.zarr > brain.mhd
      zarrfs header --format bin.hdr --path red scene.zarr > red.bin.hdr

    Exit status: 0 printed, 1 failed, also where the format has no place for such an array, 2
    wrong usage.
    """
    from zarrfs.library.header import HeaderOptions, header
    from zarrfs.library.source import SourceOptions

    made = header(
        source,
        container,
        HeaderOptions(path, data_file, byteorder, order),
        SourceOptions(storage_options=storage_options),
    )
    sys.stdout.buffer.write(made)
    sys.stdout.flush()
