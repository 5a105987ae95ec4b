"""``zarrfs info``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from zarrfs.cli.options import storage_options
from zarrfs.cli.sizes import exact_size, shape_text, size_text, summary_line
from zarrfs.counted import counted, printable

if TYPE_CHECKING:
    from zarrfs.array.node_readers import Node
    from zarrfs.format.metadata.node import ArrayMetadata
    from zarrfs.library.checking.stored_objects import StoredObjects
    from zarrfs.library.info import ArrayInfo, GroupInfo, ServedName


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
@storage_options
def command(
    source: str,
    path: str,
    nodes: int,
    depth: int | None,
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

    found = info.info(source, path, nodes=nodes, depth=depth, storage_options=storage_options)
    if as_json:
        click.echo(json.dumps(info.as_json(found), indent=2))
        return
    encoding = sys.stdout.encoding or "ascii"
    text = info_text(source, found, unicode="utf" in encoding.lower())
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)


_LABEL = 13
_LONGEST_VALUE = 300
_SHOWN_ATTRIBUTES = 12


def info_text(source: str, found: ArrayInfo | GroupInfo, *, unicode: bool) -> str:
    """Lines that end with a newline.

    unicode : whether lines and blocks can be shown, else they are of ASCII.
    """
    from zarrfs.library.info import GroupInfo

    title = "/".join(filter(None, (source.rstrip("/") or source, found.path)))
    body = _group(found, unicode) if isinstance(found, GroupInfo) else _array(found, unicode)
    return "".join(f"{line}\n" for line in (printable(title), *body))


def _row(label: str, value: str) -> str:
    return f"  {label:<{_LABEL}}{printable(value)}"


# --- arrays ---------------------------------------------------------------------


def _array(found: ArrayInfo, unicode: bool) -> Iterator[str]:
    if found.metadata is None:
        yield _row("array", "that cannot be served")
    else:
        yield from _metadata(found.metadata)
        if found.stored is not None:
            yield _row("stored", _stored(found.stored, found.metadata))
        if found.facts is not None:
            from zarrfs.views.facts.said import lines

            # The shape has said these units.
            in_shape = "dimension_units" in found.metadata.attributes
            for label, value in lines(found.facts):
                if not (in_shape and label.startswith("axis ")):
                    yield _row(label, value if unicode else value.replace("×", "*"))
        yield from _attributes(found.metadata.attributes)
    if found.problem is not None:
        yield _row("problem", found.problem)
    for number, entry in enumerate(found.served):
        yield _row("" if number else "served as", _served(entry))
    stored = found.stored
    if stored is not None and stored.present and stored.possible > 1:
        yield ""
        yield from _picture(stored, found.metadata, unicode)


def _metadata(metadata: ArrayMetadata) -> Iterator[str]:
    layout = metadata.layout
    data_type = layout.data_type
    yield _row("array", f"Zarr {metadata.zarr_format}")
    yield _row("shape", _shape(metadata))
    size = counted(data_type.item_size, "byte") if data_type.fixed_size else "of any length"
    yield _row("data type", f"{_compact(metadata.summary['data_type'])}, {size}")
    yield _row("fill value", _compact(metadata.summary.get("fill_value")))
    for name, grid in (("chunks", layout.read), ("shards", layout.stored)):
        if name == "chunks" or layout.sharded:
            shape = grid.largest_chunk
            nbytes = layout.spec(shape).nbytes
            size = f" ({size_text(nbytes)})" if data_type.fixed_size else ""
            most = "" if grid.regular_shape is not None else "up to "
            counts = f" ({shape_text(grid.counts)})" if len(grid.counts) > 1 else ""
            yield _row(name, f"{most}{shape_text(shape)}{size}, {grid.chunks} of them{counts}")
    yield _row("codecs", ", ".join(map(_codec, metadata.summary["codecs"])) or "none")
    yield _row("chunk keys", _codec(metadata.summary["chunk_key_encoding"]))
    if data_type.fixed_size:
        yield _row("size", exact_size(metadata.nbytes))


def _shape(metadata: ArrayMetadata) -> str:
    text = shape_text(metadata.shape)
    if any(metadata.dimension_names):
        text += f" ({', '.join(name or '-' for name in metadata.dimension_names)})"
    units = metadata.attributes.get("dimension_units")
    if isinstance(units, list) and len(units) == len(metadata.shape):
        text += f" in {', '.join(str(unit or '-') for unit in units)}"
    return text


def _codec(codec: Any) -> str:
    """``zstd(level=3)``, and the codecs in it for sharding."""
    if not isinstance(codec, Mapping):
        return str(codec)
    members = []
    for name, value in (codec.get("configuration") or {}).items():
        if name in ("codecs", "index_codecs") and isinstance(value, list):
            text = f"[{', '.join(map(_codec, value))}]"
        else:
            text = _compact(value)
        members.append(f"{name}={text}")
    return f"{codec.get('name')}({', '.join(members)})" if members else str(codec.get("name"))


def _compact(value: Any) -> str:
    """JSON in one line, without quotes around a text."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _stored(stored: StoredObjects, metadata: ArrayMetadata) -> str:
    what = "shards" if metadata.layout.sharded else "chunks"
    if stored.picture is None:
        return f"{stored.possible} {what} are possible, and the store cannot list"
    least = "" if stored.complete else "at least "
    text = f"{least}{stored.present} of {stored.possible} {what}"
    if not stored.present:
        return text
    text += f", {exact_size(stored.nbytes)}"
    if stored.measured < stored.present:
        return f"{text} in {stored.measured} of them"
    if (compressed := stored.ratio(metadata)) is not None:
        text += f", compressed {compressed:.3g}:1"
    return text


def _attributes(attributes: Mapping[str, Any]) -> Iterator[str]:
    for number, (name, value) in enumerate(attributes.items()):
        if number == _SHOWN_ATTRIBUTES:
            yield _row("", f"and {len(attributes) - number} more")
            return
        yield _row("" if number else "attributes", f"{name} = {_compact(value)}")


def _served(entry: ServedName) -> str:
    if entry.files is not None:
        return f"{entry.name + '/':<16}{entry.files} file{'' if entry.files == 1 else 's'}"
    size = "" if entry.nbytes is None else size_text(entry.nbytes)
    return f"{entry.name:<16}{size}".rstrip()


def _picture(stored: StoredObjects, metadata: ArrayMetadata | None, unicode: bool) -> Iterator[str]:
    assert stored.picture is not None
    assert metadata is not None
    # From none to all: empty, up to a third, up to two thirds, less than all, all.
    glyphs = "·░▒▓█" if unicode else ".-+*#"
    what = "shards" if metadata.layout.sharded else "chunks"
    yield f"  stored {what} ({glyphs[0]} none {'…' if unicode else '...'} {glyphs[-1]} all)"
    for row in stored.picture:
        yield "    " + "".join(_glyph(share, glyphs) for share in row)


def _glyph(share: float, glyphs: str) -> str:
    if share <= 0:
        return glyphs[0]
    return glyphs[-1] if share >= 1 else glyphs[1 + min(int(3 * share), 2)]


# --- groups ---------------------------------------------------------------------


def _group(found: GroupInfo, unicode: bool) -> Iterator[str]:
    yield f"  group, Zarr {found.metadata.zarr_format or 3}"
    yield from _attributes(found.metadata.attributes)
    yield from _tree([(depth, _node(node)) for depth, node in found.nodes], unicode)
    if not found.complete:
        yield "  … and more (--nodes shows them)" if unicode else "  ... and more (--nodes)"
    if found.problem is not None:
        yield _row("problem", found.problem)


def _node(node: Node) -> str:
    from zarrfs.format.metadata.node import ArrayMetadata

    name = node.path.rpartition("/")[2]
    if isinstance(node.metadata, ArrayMetadata):
        text = f"{name}  {summary_line(node.metadata)}"
    else:
        text = name if node.metadata is None else f"{name}/"
    return text if node.problem is None else f"{text}  problem: {node.problem}"


def _tree(entries: Sequence[tuple[int, str]], unicode: bool) -> Iterator[str]:
    """Lines with branches; an entry is the last of its parent if none of its depth follows."""
    branch, end, line = ("├── ", "└── ", "│   ") if unicode else ("|-- ", "`-- ", "|   ")
    lasts = []
    follows: dict[int, bool] = {}
    for depth, _ in reversed(entries):
        lasts.append(not follows.get(depth, False))
        follows = {d: more for d, more in follows.items() if d < depth} | {depth: True}
    above: list[bool] = []
    for (depth, text), last in zip(entries, reversed(lasts), strict=True):
        del above[depth - 1 :]
        indent = "".join("    " if ended else line for ended in above)
        yield f"  {indent}{end if last else branch}{printable(text)}"
        above.append(last)
