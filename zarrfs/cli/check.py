"""``zarrfs check``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from zarrfs.cli.sizes import counted
from zarrfs.cli.transfer_options import source_options
from zarrfs.store.redact import shown_url

if TYPE_CHECKING:
    from zarrfs.library.checking.findings import Finding, Totals
    from zarrfs.library.source import SourceOptions

_EXIT_PROBLEMS = 3
_EXIT_REPAIRED = 4
# With --json everything is said at the end, and has to be kept until then.
_MOST_IN_JSON = 10_000
_CHUNKS_SHOWN = 4


@click.command("check")
@click.argument("source")
@click.option("--path", default="", metavar="PATH", help="Of the array or group in a hierarchy.")
@click.option(
    "--repair",
    is_flag=True,
    help="Replace damaged shards by what can be read of them, and remove leftovers.",
)
@click.option("--json", "as_json", is_flag=True, help="Tell everything as one JSON document.")
@source_options
def command(
    source: str, *, path: str, repair: bool, as_json: bool, source_options: SourceOptions
) -> int:
    """Read all metadata and decode all chunks of SOURCE, and tell what is wrong.

    \b
    Each line of the output is one finding:
      metadata   a document that cannot be served, and why
      chunk      a chunk that does not decode, or fails its checksum
      shard      a shard that is torn, or has such inner chunks
      lost       chunks that an earlier repair could not save, and that nobody has written since
      orphan     an object that belongs to no array, or lies outside its grid
      leftover   a temporary file of a writer that was killed
      access     something that the store does not give out
    Notes, which are no problem:
      deviation  metadata that depart from the specification and are served all the same
      aside      the original of a shard that was repaired

    With --repair, the inner chunks of a damaged shard that can be read for certain become a
    new shard; those that cannot are then missing, and read as the fill value. The original is
    never deleted: it is kept in .zarrfs-damaged/ beside the array's chunks, with a record of the
    chunks that are lost. Nothing else in the data is changed, and what is not repaired is said.
    Repair nothing that is being written to.

    Chunks without a checksum (crc32c, gzip, or zstd with one) are counted: they decode, but nothing
    tells whether their elements are those that were written.

    \b
    Examples:
      zarrfs check data.zarr
      zarrfs check --json s3://bucket/data.zarr | jq .problems
      zarrfs check --repair data.zarr --path group/temperature

    Exit status: 0 nothing is wrong, 1 could not be checked, 2 wrong usage, 3 problems were
    found, 4 problems were found and all of them repaired, without loss.
    """
    from zarrfs.cli.progress import ProgressLine
    from zarrfs.library.checking.check import CheckConfig, check

    found: list[Finding] = []
    with ProgressLine("check", "chunks") as line:

        def tell(finding: Finding) -> None:
            if not as_json:
                line.interrupt()
                click.echo(_text(finding))
            elif len(found) < _MOST_IN_JSON:
                found.append(finding)

        config = CheckConfig(
            path=path,
            repair=repair,
            source=source_options,
            found=tell,
            progress=lambda totals: line(totals.chunks, -1),
        )
        totals = check(source, config)
        line.interrupt()
    if as_json:
        click.echo(json.dumps(_document(source, totals, found), indent=2))
    else:
        click.echo(_summary(totals))
    if not totals.problems:
        return 0
    return _EXIT_REPAIRED if totals.repaired == totals.problems else _EXIT_PROBLEMS


def _text(finding: Finding) -> str:
    parts = [f"{finding.kind}: {finding.key or '/'}: {finding.reason}"]
    if finding.kind == "shard":
        whole = finding.readable + finding.unreadable
        parts.append(f"{finding.unreadable} of {whole} chunks cannot be read")
        shown = ", ".join(str(list(index)) for index in finding.chunks[:_CHUNKS_SHOWN])
        parts[-1] += f" ({shown}{', …' if finding.unreadable > _CHUNKS_SHOWN else ''})"
    if finding.repaired is not None:
        parts.append(f"repaired: {finding.repaired}")
    if finding.unrepaired is not None:
        parts.append(f"{'not all' if finding.repaired else 'not'} repaired: {finding.unrepaired}")
    # What a store tells may hold anything, also what would move a terminal's cursor.
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in "; ".join(parts)
    )


def _summary(totals: Totals) -> str:
    looked_at = ", ".join(
        counted(number, what)
        for number, what in (
            (totals.arrays, "array"),
            (totals.groups, "group"),
            (totals.objects, "stored object"),
            (totals.chunks, "chunk"),
        )
    )
    if totals.unverified:
        have = "has" if totals.unverified == 1 else "have"
        looked_at += (
            f"; {counted(totals.unverified, 'chunk')} {have} no checksum, so damage that still "
            "decodes does not show"
        )
    if not totals.problems:
        return f"nothing is wrong: {looked_at}"
    repaired = f", {totals.repaired} repaired" if totals.repaired else ""
    return f"{counted(totals.problems, 'problem')}{repaired}: {looked_at}"


def _document(source: str, totals: Totals, found: list[Finding]) -> dict[str, object]:
    return {
        "source": shown_url(source),
        "arrays": totals.arrays,
        "groups": totals.groups,
        "objects": totals.objects,
        "chunks": totals.chunks,
        "unverified": totals.unverified,
        "problems": [finding.as_json() for finding in found if not finding.is_note],
        "notes": [finding.as_json() for finding in found if finding.is_note],
        "not_shown": totals.problems + totals.notes - len(found),
        "repaired": totals.repaired,
    }
