"""``zarrfs import``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from zarrfs.cli.options import Flat, engine_options, flat_options, source_options
from zarrfs.errors import UsageError

if TYPE_CHECKING:
    from zarrfs.library.engine import EngineConfig
    from zarrfs.library.source import SourceOptions


@click.command("import")
@click.argument("file")
@click.argument("target")
@flat_options("bin", "npy", default="npy for a FILE named *.npy, else bin")
@click.option(
    "--resume",
    is_flag=True,
    help="Compare FILE with the stored chunks, and write only those that differ.",
)
@click.option(
    "--create", is_flag=True, help="Create TARGET with shape and data type of FILE, an NPY file."
)
@click.option("--store-fill", is_flag=True, help="Also store chunks that hold only the fill value.")
@engine_options
@source_options
def command(
    file: str,
    target: str,
    *,
    flat: Flat,
    resume: bool,
    create: bool,
    store_fill: bool,
    engine: EngineConfig,
    source_options: SourceOptions,
) -> int:
    """Write the elements of FILE, or for "-" of standard input, to the array TARGET.

    TARGET must exist: "zarrfs create" creates any array, --create one with shape and data type
    of an NPY file. FILE must have exactly the size of the array, or of its --region; the
    command checks that first. Chunks are encoded and stored in parallel, each stored object
    once and as a whole. The header of an NPY file has its axis order and byte order.

    \b
    Examples:
      zarrfs import data.npy data.zarr
      zarrfs import t.bin data.zarr/temperature --order F --byteorder big
      zarrfs import --region 5,:,: plane.npy data.zarr
      zcat data.bin.gz | zarrfs import - data.zarr

    Without an error, all elements are stored. After a failure or an interruption, stored chunks
    remain; the same command with --resume writes the rest.

    Exit status: 0 all stored, 1 failed, 2 wrong usage (also a FILE of the wrong size).
    """
    from zarrfs.cli.progress import ProgressBar
    from zarrfs.library.transfer.importing import import_array
    from zarrfs.library.transfer.transfer import TransferConfig

    options = replace(source_options, store_fill=store_fill)
    form = flat.form(file, lambda name: "npy" if name.lower().endswith(".npy") else "bin")
    if form.container == "npy" and (flat.byteorder or flat.order):
        raise UsageError("--byteorder and --order are in the header of an NPY file")
    if create:
        from zarrfs.format.making.new_array import NewArray
        from zarrfs.library.create import create as create_array
        from zarrfs.library.like import like

        if form.container != "npy" or file == "-" or flat.path or flat.region:
            raise UsageError("--create needs an NPY file, and neither --path nor --region")
        found = like(file, {})
        create_array(
            target,
            NewArray(found.shape, found.data_type, usual=True),
            storage_options=options.storage_options,
        )
    with ProgressBar("import") as progress:
        config = TransferConfig(flat.path, flat.region, resume, options, engine, progress)
        import_array(file, target, form, config)
    return 0
