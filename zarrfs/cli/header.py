"""``zarrfs header``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import click

from zarrfs.cli.options import byteorder_option, order_option, path_option, storage_options
from zarrfs.views.headers.registry import FORMATS


@click.command("header")
@click.argument("source")
@click.option(
    "--format",
    "container",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="Format of the header, as in the file name array.FORMAT of a mount.",
)
@path_option
@click.option(
    "--data-file",
    default="array.bin",
    show_default=True,
    metavar="NAME",
    help="Name of the file with the elements, for a header in a file of its own.",
)
@byteorder_option
@order_option
@storage_options
def command(
    source: str,
    *,
    container: str,
    path: str,
    data_file: str,
    byteorder: Literal["little", "big"] | None,
    order: Literal["C", "F"] | None,
    storage_options: Mapping[str, object],
) -> None:
    """Print the header with which other programs open the elements of the array SOURCE.

    The header has the bytes of array.nhdr in a mount, or those before the elements in array.npy.
    Put it beside the output of "zarrfs export", or beside your own file.

    \b
    Examples:
      zarrfs header --format mhd --data-file brain.raw brain.zarr > brain.mhd
      zarrfs header --format bin.hdr --path red scene.zarr > red.bin.hdr

    Exit status: 0 printed, 1 failed, also if the format cannot express the array, 2 wrong usage.
    """
    from zarrfs.library.header import header
    from zarrfs.library.source import SourceOptions
    from zarrfs.library.transfer.flat_form import FlatForm

    made = header(
        source,
        FlatForm(container, byteorder or "little", order or "C"),
        SourceOptions(storage_options=storage_options),
        path=path,
        data_file=data_file,
    )
    click.echo(made, nl=False)
