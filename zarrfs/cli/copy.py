"""``zarrfs copy``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from zarrfs.cli.create import read_attributes, read_numbers
from zarrfs.cli.options import copy_options, engine_options
from zarrfs.counted import counted
from zarrfs.errors import UsageError

if TYPE_CHECKING:
    from zarrfs.library.copying.copy import ArrayPlan, CopyResult
    from zarrfs.library.copying.form import CopyForm
    from zarrfs.library.engine import EngineConfig
    from zarrfs.library.source import SourceOptions

_NONE = "none"


@click.command("copy")
@click.argument("source")
@click.argument("destination")
@click.option(
    "--path", default="", metavar="PATH", help="Path of the array or group in the hierarchy SOURCE."
)
@click.option(
    "--region",
    default="",
    metavar="START:STOP,…",
    help="Copy only this part of an array: START:STOP or an index for each axis.",
)
@click.option("--zarr-format", type=click.Choice(["2", "3"]), help="[default: as in SOURCE]")
@click.option(
    "--chunks",
    metavar="N,N,…",
    help="Elements of a chunk along each axis, without shards unless --shards is given; -1: the "
    "whole axis. For arrays of as many axes.",
)
@click.option(
    "--shards",
    metavar="N,N,…|none",
    help="Elements of a shard, a stored object of several chunks, along each axis.",
)
@click.option(
    "--codecs",
    metavar="CODECS",
    multiple=True,
    help="Such as zstd:3 or blosc:lz4,5,shuffle, or JSON; none for no compression.",
)
@click.option(
    "--like",
    metavar="ARRAY",
    help="Take chunks, shards, codecs and version of Zarr from another array.",
)
@click.option(
    "--dtype",
    metavar="TYPE",
    help="Another data type, such as float32. An element without an equal in it is an error.",
)
@click.option(
    "--attributes", metavar="JSON|@FILE", help="User attributes to add to what is copied."
)
@click.option("--verify", is_flag=True, help="Read everything back, and compare checksums.")
@click.option("--overwrite", is_flag=True, help="Replace the array or group at DESTINATION.")
@click.option(
    "-n", "--dry-run", is_flag=True, help="Print sizes and counts of objects; copy nothing."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@engine_options
@copy_options
def command(  # noqa: PLR0913 - click passes each option
    source: str,
    destination: str,
    *,
    path: str,
    region: str,
    verify: bool,
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    engine: EngineConfig,
    source_options: SourceOptions,
    **form: Any,
) -> int:
    """Copy the array or hierarchy SOURCE to DESTINATION, a directory or a URL.

    SOURCE is anything that can be mounted: Zarr of any version, a .zip file, NetCDF, HDF5,
    references, an Icechunk snapshot, a bucket. Attributes, names of axes, fill values and
    consolidated metadata are kept; other options change the form. Each object is written once.
    Chunks of fill values only are not stored. If the codecs and the chunks stay the same, encoded
    chunks are passed on as they are.

    \b
    Examples:
      zarrfs copy old.zarr new.zarr --zarr-format 3 --shards 512,512,512
      zarrfs copy data.zarr rows.zarr --chunks 8,1024,1024 --codecs zstd:3
      zarrfs copy image.zarr/0 crop.zarr --region 100:200,:,0:512
      zarrfs copy s3://bucket/data.zarr data.zarr --verify
      zarrfs copy climate.nc climate.zarr
      zarrfs copy --scheduler tcp://host:8786 /shared/a.zarr /shared/b.zarr --chunks 1,-1,-1

    The metadata are stored last. After an interruption, the same command goes on where it was: a
    record of the progress is in DESTINATION until the end. Meanwhile a second copy to DESTINATION
    is refused. SOURCE must not change.

    With --scheduler, workers open SOURCE and DESTINATION themselves, so both must be where all
    workers find them, and secrets must be in their environment. Each task takes --memory.

    Exit status: 0 all copied, 1 failed or not all copied, 2 wrong usage.
    """
    from zarrfs.cli.progress import ProgressBar
    from zarrfs.library.copying.copy import CopyConfig, copy_node
    from zarrfs.memory.allocator import keep_freed_memory

    keep_freed_memory()
    begun = time.monotonic()
    with ProgressBar("copy") as progress:
        config = CopyConfig(
            path=path,
            region=region,
            form=_form(form, source_options),
            overwrite=overwrite,
            verify=verify,
            dry_run=dry_run,
            source=source_options,
            engine=engine,
            progress=progress,
        )
        result = copy_node(source, destination, config)
    if as_json:
        document = result_document(result, dry_run=dry_run)
        if not dry_run:
            document["seconds"] = round(time.monotonic() - begun, 3)
        click.echo(json.dumps(document, indent=2))
    elif dry_run:
        for text in _plan_lines(result):
            click.echo(text)
    return 0


def _form(given: dict[str, Any], options: SourceOptions) -> CopyForm:
    from zarrfs.format.text_forms import parse_codecs, read_data_type
    from zarrfs.library.copying.form import CopyForm
    from zarrfs.library.like import like

    data_type = endian = None
    version: Any = None if given["zarr_format"] is None else int(given["zarr_format"])
    shards: Sequence[int] | None = None
    try:
        if given["dtype"] is not None:
            data_type, endian = read_data_type(given["dtype"])
        if given["shards"] is not None:
            none = given["shards"].strip() in ("", _NONE)
            shards = [] if none else read_numbers("--shards", given["shards"])
        chunks = given["chunks"]
        codecs = [codec for text in given["codecs"] for codec in parse_codecs(text)]
        return CopyForm(
            zarr_format=version,
            chunks=None if chunks is None else read_numbers("--chunks", chunks),
            shards=shards,
            codecs=codecs if given["codecs"] else None,
            like=None if given["like"] is None else like(given["like"], options.storage_options),
            data_type=data_type,
            endian=endian,
            attributes={} if given["attributes"] is None else read_attributes(given["attributes"]),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def result_document(result: CopyResult, *, dry_run: bool) -> dict[str, Any]:
    """A result as JSON."""
    document: dict[str, Any] = {
        "groups": result.groups,
        "arrays": [_array_document(plan) for plan in result.arrays],
        "documents": result.documents,
        "bytes": sum(plan.nbytes for plan in result.arrays),
        "objects": sum(plan.objects for plan in result.arrays),
        "requests": sum(plan.requests for plan in result.arrays) + result.documents,
    }
    if not dry_run:
        document["resumed"] = result.resumed
        document["copied"] = {
            "bytes": result.copied.nbytes,
            "objects": result.copied.objects,
            "stored": result.copied.stored,
            "checksum": f"{result.copied.checksum:08x}",
        }
    return document


def _array_document(plan: ArrayPlan) -> dict[str, Any]:
    layout = plan.metadata.layout
    return {
        "path": plan.path,
        "shape": list(plan.metadata.shape),
        "data_type": layout.data_type.name,
        "zarr_format": plan.metadata.zarr_format,
        "chunks": list(layout.read.largest_chunk),
        "shards": list(layout.stored.largest_chunk) if layout.sharded else None,
        "bytes": plan.nbytes,
        "source_objects": plan.source_objects,
        "objects": plan.objects,
        "requests": plan.requests,
        "decoded": round(plan.decoded, 3),
    }


def _plan_lines(result: CopyResult) -> list[str]:
    from zarrfs.cli.sizes import size_text, summary_line
    from zarrfs.counted import printable

    lines = []
    for plan in result.arrays:
        how = (
            "chunks passed on as they are"
            if not plan.decoded
            else f"each chunk decoded {plan.decoded:.3g} times"
        )
        lines.append(
            f"/{printable(plan.path)}: {summary_line(plan.metadata)}: {size_text(plan.nbytes)}, "
            f"{counted(plan.source_objects, 'object')} to {counted(plan.objects, 'object')}, {how}"
        )
    total = result_document(result, dry_run=True)
    lines.append(
        f"{counted(len(result.arrays), 'array')}, {counted(result.groups, 'group')}: "
        f"{size_text(total['bytes'])} decoded, at most {counted(total['objects'], 'object')}, "
        f"{counted(total['documents'], 'document')} and {counted(total['requests'], 'request')}"
    )
    return lines
