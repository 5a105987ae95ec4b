"""``zarrfs create``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zarrfs import bounds
from zarrfs.cli.options import storage_options
from zarrfs.errors import AlreadyExists, UsageError

if TYPE_CHECKING:
    from zarrfs.format.making.chunk_choice import ChunkConstraints
    from zarrfs.format.making.new_array import NewArray

_LARGEST_FILE = 64 << 20
_TENSORSTORE = "tensorstore"  # in place of the lengths of chunks


@click.command("create")
@click.argument("target")
@click.option("--shape", metavar="N,N,…", help="Elements along each axis; '' for no axes.")
@click.option("--dtype", metavar="TYPE", help="uint16, float32, bfloat16, r24, string, <f4, JSON …")
@click.option("--chunks", metavar="N,N,…|tensorstore", help="Elements of a chunk along each axis.")
@click.option(
    "--shards",
    metavar="N,N,…",
    help="Elements of a shard, a stored object of several chunks, along each axis.",
)
@click.option(
    "--chunk-elements", type=int, metavar="N", help="About how many elements a chunk has."
)
@click.option(
    "--shard-elements", type=int, metavar="N", help="About how many elements a shard has."
)
@click.option(
    "--aspect-ratio",
    metavar="R,R,…",
    help="Ratio of the lengths of chunks, and of shards without the next option.",
)
@click.option("--shard-aspect-ratio", metavar="R,R,…", help="Ratio of the lengths of shards.")
@click.option(
    "--codecs",
    metavar="CODECS",
    multiple=True,
    help="Such as zstd:3, blosc:lz4,5,shuffle or zstd,crc32c, or JSON; none for no compression. "
    "Several options are applied in order.",
)
@click.option(
    "--order", metavar="C|F|N,N,…", help="Order of the axes in a chunk, the slowest first."
)
@click.option("--fill", metavar="VALUE", help="Fill value: 0, nan, 1+2j, 0x7fc00000, JSON.")
@click.option("--dimension-names", metavar="NAME,…", help="Name of each axis; empty for none.")
@click.option(
    "--dimension-units",
    metavar="UNIT,…",
    help="Unit of each axis, such as 4nm,4nm,40nm; empty for none.",
)
@click.option("--key-encoding", metavar="KEYS", help="default, v2, /, ., v2/, default., or JSON.")
@click.option("--attributes", metavar="JSON|@FILE", help="User attributes, a JSON object.")
@click.option("--zarr-format", type=click.Choice(["2", "3"]), help="[default: 3]")
@click.option(
    "--like", metavar="SOURCE", help="Copy the form of an array, or of another file (see above)."
)
@click.option("--from", "template", metavar="FILE", help="Start from a zarr.json or .zarray file.")
@click.option("--overwrite", is_flag=True, help="Replace an existing array and its data.")
@click.option("--exist-ok", is_flag=True, help="Keep an existing array if it matches.")
@click.option("-n", "--dry-run", is_flag=True, help="Print the metadata, and create nothing.")
@storage_options
def command(target: str, **given: Any) -> int:
    """Create a Zarr array at TARGET, a directory or a URL that fsspec can write to.

    \b
    Examples:
      zarrfs create a.zarr --shape 1000,2000,3000 --dtype uint16
      zarrfs create a.zarr --shape 1000,2000,3000 --dtype uint16 --codecs zstd:3 \\
          --chunks 64,64,64 --shards 512,512,512
      zarrfs create a.zarr --like scan.nhdr --chunk-elements 100000 --codecs blosc:lz4,5,shuffle
      zarrfs create b.zarr --from a.zarr/zarr.json --dtype float32 --fill nan
      zarrfs create s3://bucket/a.zarr --shape 100,100 --dtype '>f4' --zarr-format 2

    Without --chunks, a chunk has about 1 MiB, and its lengths are powers of two. In --chunks
    and --shards, 0 lets zarrfs choose a length, -1 is the whole axis, and ~100 is a preference
    that other lengths may override. With shards, --codecs are the codecs of the inner chunks.
    The default codec is zstd, with --zarr-format 2 blosc; --codecs none stores chunks
    uncompressed.

    --chunks tensorstore makes the choices of TensorStore: chunks of about 2^20 elements, with the
    same length along each axis, uncompressed. --chunk-elements and --aspect-ratio also follow its
    rules.

    --like copies shape, data type, chunks, shards, codecs, fill value and attributes of a Zarr
    array, but no data. From a .npy, NRRD (.nrrd, .nhdr), MetaImage (.mhd, .mha), ENVI (.hdr) or
    TIFF file it copies shape and data type. Other options override --like.

    Nothing is replaced without --overwrite. If several programs create the same array at the same
    time, one succeeds, in stores with conditional writes.

    Exit status: 0 created (or exists, with --exist-ok), 1 not created, 2 wrong usage.
    """
    from zarrfs.array.making.create import IfExists, new_documents
    from zarrfs.cli.sizes import summary_line
    from zarrfs.library.create import create

    if given["overwrite"] and given["exist_ok"]:
        raise UsageError("--overwrite and --exist-ok exclude each other")
    array = _array(given)
    if given["dry_run"]:
        for document in new_documents(array).values():
            click.echo(document, nl=False)
        return 0
    if_exists = IfExists.FAIL
    if given["overwrite"]:
        if_exists = IfExists.REPLACE
    elif given["exist_ok"]:
        if_exists = IfExists.OPEN
    try:
        outcome, metadata = create(
            target, array, storage_options=given["storage_options"], if_exists=if_exists
        )
    except AlreadyExists as error:
        if if_exists is not IfExists.FAIL:
            raise
        hint = "--overwrite replaces an array, --exist-ok keeps one that matches"
        raise AlreadyExists(f"{error} ({hint})") from error
    click.echo(f"{outcome.value} {target}: {summary_line(metadata)}")
    return 0


def _array(given: Mapping[str, Any]) -> NewArray:
    """The array that the options describe. Raises UsageError."""
    from zarrfs.format.making.array_template import with_defaults

    array = _template(given)
    try:
        asked = _asked(given, array)
        if given["template"] is None and given["like"] is not None:
            from zarrfs.library.like import fitting

            array = fitting(
                array,
                rank=len(array.shape or ()) if asked.shape is None else len(asked.shape),
                data_type=asked.data_type or array.data_type,
                zarr_format=asked.zarr_format or array.zarr_format or 3,
            )
        array = with_defaults(asked, array)
    except ValueError as error:
        raise UsageError(str(error)) from error
    missing = [
        option
        for option, value in (("--shape", array.shape), ("--dtype", array.data_type))
        if value is None
    ]
    if missing:
        what = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} needed"
        raise UsageError(f"{what}: give {'it' if len(missing) == 1 else 'them'}, or --like SOURCE")
    return array


def _template(given: Mapping[str, Any]) -> NewArray:
    from zarrfs.format.making.new_array import NewArray

    base = NewArray()
    if given["template"] is not None:
        from zarrfs.format.making.array_template import template
        from zarrfs.format.metadata.documents import load_json

        path = Path(given["template"])
        attributes = None
        if path.name == ".zarray" and (beside := path.with_name(".zattrs")).exists():
            attributes = load_json(_file(str(beside)), str(beside))
        base = template(load_json(_file(str(path)), str(path)), str(path), attributes)
    if given["like"] is not None:
        from dataclasses import replace

        from zarrfs.library.like import like

        found = like(given["like"], given["storage_options"])
        if given["template"] is not None:
            return replace(base, shape=found.shape, data_type=found.data_type)
        base = found
    return base


def _asked(given: Mapping[str, Any], base: NewArray) -> NewArray:
    from zarrfs.format.making.new_array import NewArray
    from zarrfs.format.registry import parse_data_type
    from zarrfs.format.text_forms import (
        parse_codecs,
        read_chunk_keys,
        read_data_type,
        read_fill,
        read_unit,
    )

    readers: dict[str, Callable[[str], Any]] = {
        "shape": lambda text: tuple(read_numbers("--shape", text)),
        "zarr_format": int,
        "dimension_names": _names,
        "dimension_units": lambda text: [unit and read_unit(unit) for unit in _names(text)],
        "attributes": read_attributes,
    }
    members = {name: read(given[name]) for name, read in readers.items() if given[name] is not None}
    members |= {"usual": given["chunks"] != _TENSORSTORE} | _chunks(given)
    if given["dtype"] is not None:
        members["data_type"], endian = read_data_type(given["dtype"])
        members["endian"] = None if endian == "little" else endian
    if given["codecs"]:
        members["codecs"] = [codec for text in given["codecs"] for codec in parse_codecs(text)]
    data_type = members.get("data_type", base.data_type)
    if given["fill"] is not None:
        if data_type is None:
            raise ValueError("a --fill needs a --dtype")
        members["fill_value"] = read_fill(given["fill"], parse_data_type(data_type))
    shape = members.get("shape", base.shape)
    if given["order"] is not None and shape is not None:
        members["order"] = _order(given["order"], len(shape))
    if given["key_encoding"] is not None:
        zarr_format = members.get("zarr_format", base.zarr_format) or 3
        members["key_encoding"] = read_chunk_keys(given["key_encoding"], zarr_format)
    return NewArray(**members)


def _chunks(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without anything for shards, nothing is sharded."""
    lengths = None if given["chunks"] == _TENSORSTORE else given["chunks"]
    chunks = _constraints("--chunks", lengths, given["chunk_elements"], given, "")
    shards = _constraints("--shards", given["shards"], given["shard_elements"], given, "shard_")
    if (given["shards"], given["shard_elements"], given["shard_aspect_ratio"]) == (None,) * 3:
        return {"chunks": chunks}
    return {"chunks": chunks, "shards": shards}


def _constraints(
    option: str, lengths: str | None, elements: int | None, given: Mapping[str, Any], prefix: str
) -> ChunkConstraints:
    from zarrfs.format.making.chunk_choice import ChunkConstraints

    ratio = given[f"{prefix}aspect_ratio"] or given["aspect_ratio"]
    words = [] if lengths is None else _words(lengths)
    return ChunkConstraints(
        lengths=tuple(read_numbers(option, ",".join(word.lstrip("~") for word in words))),
        about=frozenset(axis for axis, word in enumerate(words) if word.startswith("~")),
        elements=elements,
        aspect_ratio=() if ratio is None else tuple(read_numbers("--aspect-ratio", ratio, float)),
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")] if text.strip() else []


def _names(text: str) -> list[str | None]:
    return [word or None for word in _words(text)]


def read_numbers(option: str, text: str, read: Callable[[str], Any] = int) -> list[Any]:
    """Numbers, as in ``100,200``. Raises ValueError."""
    try:
        return [read(word) for word in _words(text)]
    except ValueError:
        what = "whole numbers" if read is int else "numbers"
        raise ValueError(f"{option} {text!r} is not a list of {what} such as 100,200") from None


def _order(text: str, rank: int) -> tuple[int, ...]:
    axes = tuple(range(rank))
    if text.upper() in ("C", "F"):
        return axes if text.upper() == "C" else axes[::-1]
    return tuple(read_numbers("--order", text))


def read_attributes(text: str) -> Mapping[str, Any]:
    source = _file(text[1:]).decode(errors="replace") if text.startswith("@") else text
    try:
        value = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"--attributes are not JSON: {bounds.why_not_json(source, error)}"
        ) from error
    if not isinstance(value, dict):
        raise ValueError("--attributes are not a JSON object")
    return value


def _file(path: str) -> bytes:
    from zarrfs.library.headers.header import read_start

    data = read_start(path, _LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise UsageError(f"{path}: has more than {_LARGEST_FILE >> 20} MiB")
    return data
