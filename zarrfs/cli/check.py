"""``zarrfs check``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from zarrfs.cli.options import engine_options, source_options
from zarrfs.counted import counted, printable
from zarrfs.store.redact import shown_url

if TYPE_CHECKING:
    from zarrfs.library.checking.findings import Finding, Totals
    from zarrfs.library.engine import EngineConfig
    from zarrfs.library.source import SourceOptions

_EXIT_PROBLEMS = 1
_EXIT_REPAIRED = 4
# With --json everything is said at the end, and has to be kept until then.
_MOST_IN_JSON = 10_000
_CHUNKS_SHOWN = 4


@click.command("check")
@click.argument("source")
@click.option(
    "--path", default="", metavar="PATH", help="Path of the array or group in a hierarchy."
)
@click.option(
    "--repair",
    is_flag=True,
    help="Rebuild damaged shards from their readable inner chunks, and remove leftovers.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@engine_options
@source_options
def command(
    source: str,
    *,
    path: str,
    repair: bool,
    as_json: bool,
    engine: EngineConfig,
    source_options: SourceOptions,
) -> int:
    """Read all metadata and decode all chunks of SOURCE, and list what is wrong.

    \b
    Each line of the output is one finding:
      metadata   a document that zarrfs cannot serve, and the reason
      chunk      a chunk that does not decode, or fails its checksum
      shard      a shard that is incomplete, or has damaged inner chunks
      lost       chunks that an earlier repair lost, and that no program has written since
      orphan     an object that belongs to no array, or lies outside its grid
      leftover   a temporary file of a writer that was killed
      access     an object that the store refuses to return
    Notes, which are not problems:
      deviation  metadata that depart from the specification, and that zarrfs serves
      aside      the original of a shard that was repaired

    --repair builds a new shard from the inner chunks of a damaged shard that are certainly intact.
    The others are then missing, and read as the fill value. The original stays in .zarrfs-damaged/
    beside the array's chunks, with a record of the lost chunks. --repair changes nothing else, and
    lists what it did not repair. Do not repair an array while a program writes to it.

    Chunks without a checksum (crc32c, gzip, or zstd with one) are counted: they decode, but a
    changed byte may go unnoticed.

    \b
    Examples:
      zarrfs check data.zarr
      zarrfs check --json s3://bucket/data.zarr | jq .problems
      zarrfs check --repair data.zarr --path group/temperature

    Exit status: 0 no problems, 1 problems found, or not checked, 2 wrong usage, 4 problems found
    and all repaired, without loss.
    """
    from zarrfs.cli.progress import ProgressBar
    from zarrfs.library.checking.check import CheckConfig, check_source

    found: list[Finding] = []
    with ProgressBar("check", "chunks") as bar:

        def tell(finding: Finding) -> None:
            if not as_json:
                bar.interrupt()
                click.echo(_text(finding))
            elif len(found) < _MOST_IN_JSON:
                found.append(finding)

        config = CheckConfig(
            path=path,
            repair=repair,
            source=source_options,
            engine=engine,
            found=tell,
            progress=lambda totals: bar(totals.chunks, -1),
        )
        totals = check_source(source, config)
        bar.interrupt()
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
    return printable("; ".join(parts))


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
        **asdict(totals),
        "problems": [finding.as_json() for finding in found if not finding.is_note],
        "notes": [finding.as_json() for finding in found if finding.is_note],
        "not_shown": totals.problems + totals.notes - len(found),
    }
