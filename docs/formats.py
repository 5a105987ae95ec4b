"""Writes `formats.md`: what zarrfs reads, and who else does.

    docs/formats.py            writes it
    docs/formats.py --check    fails where it is not what would be written

The rows come from zarrfs's registries, the answers from trying: a small array of each kind is
written and given to every reader.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from format_support import deviations, refusals, rows
from format_support.extras import extras_needed
from format_support.probe import ask
from format_support.readers import PEERS, RUST_ONLY
from format_support.rows import Rows

PAGE = Path(__file__).with_suffix(".md")

_INTRODUCTION = """\
<!-- Written by docs/formats.py; do not edit. -->

# What zarrfs reads

The rows are what zarrfs has, and entry points of other packages add to them
([extending zarrfs](extending.md)). The answers were found by trying: an array of each kind was
written, and whoever returns the same bits reads it.

- **read, write**: zarrfs decodes it, and encodes it too, which writing needs. **read**: elements
  of no fixed size have no flat view to write to; they are in `array.jsonl`, `array.offsets` and
  `array.values`.
- **extra**: what to install with it, as in `pip install '.[zfp]'` in a checkout.
- **by field**: one field of a struct at a time.
- **Rust**: the Rust library has it, by its source; its Python package, which was tried, does not
  reach it.
"""

_GRIDS_NOTE = """\
With grids other than `regular`, each file below `chunks/` has the size of its own chunk.
"""

_TYPES_NOTE = """\
Elements of fewer than 8 bits take one byte each in flat views: signed ones with their sign in the
unused bits, others with zeros. Fill values keep their exact bits, `"0x7f800001"` included. Every
field of a struct is little-endian in flat views (big-endian with `-o byteorder=big`), whatever the
version of Zarr and the byte order that it is stored in. zarrfs makes structs of Zarr 3 under their
older name `structured`, little-endian, because zarr-python 3.1 reads no others; later versions of
it and TensorStore read both names.
"""

_DEVIATIONS_NOTE = """\
These are on disks, against the specification or beside it. zarrfs reads what can mean only one
thing. **I/O error** is of the chunk: the reason is in `.zarrfs/stats.json`.
"""

_REFUSALS_NOTE = """\
A damaged document of a group hides no nodes below it, and damaged attributes hide no elements:
both count as empty, and `zarrfs-note.txt` says what is damaged.

An array that is not served shows its metadata and `zarrfs-note.txt` with the reason; its
neighbours are served.
"""


def page() -> str:
    extras = extras_needed()
    codecs, filters = extras["codecs"], extras["filters_of_v2"]
    parts = [
        _INTRODUCTION,
        _section("Versions", rows.versions()),
        _section("Data types", rows.data_types(), note=_TYPES_NOTE, code=True),
        _section("Data types of v1 and v2", rows.types_of_v2()),
        _section("Codecs", rows.codecs(), codecs, code=True),
        _section("Filters and compressors of v2", rows.filters_of_v2(), filters, code=True),
        _section("Chunk grids", rows.chunk_grids(), note=_GRIDS_NOTE, code=True),
        _section("Chunk key encodings", rows.chunk_key_encodings(), code=True),
        _section("Deviations in v3", deviations.rows_of_v3(), note=_DEVIATIONS_NOTE),
        _section("Deviations in v2", deviations.rows_of_v2()),
        "## What is refused\n",
        _REFUSALS_NOTE,
        _table(["", "reason given"], list(refusals.reasons().items())),
    ]
    return "\n".join(parts)


def _section(
    title: str,
    table: Rows,
    extras: Mapping[str, str] | None = None,
    *,
    note: str = "",
    code: bool = False,
) -> str:
    heads = ["", "zarrfs", *(["extra"] if extras else []), *PEERS]
    lines = []
    for name, answer in ask(table).items():
        *others, zarrs = answer.peers
        if not zarrs and (title, name) in RUST_ONLY:
            zarrs = "Rust"
        line = [f"`{name}`" if code else name, answer.zarrfs]
        if extras:
            line.append(f"`{extras[name]}`" if name in extras else "")
        lines.append([*line, *(other or "no" for other in (*others, zarrs))])
    return "\n".join([f"## {title}\n", *([note] if note else []), _table(heads, lines)])


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = "|".join(["---"] * len(heads))
    text = [f"| {' | '.join(heads)} |", f"|{rule}|"]
    for line in lines:
        cells = (cell.replace("|", "\\|") for cell in line)
        text.append(f"| {' | '.join(cells)} |")
    return "\n".join(text) + "\n"


def main() -> None:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        sys.exit(f"{PAGE} is out of date: run docs/formats.py")


if __name__ == "__main__":
    main()
