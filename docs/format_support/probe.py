"""What zarrfs and the others make of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from zarrfs.errors import DecodeError, ZarrfsError

from .readers import PEERS, finds, same
from .rows import Rows
from .samples import Elements, Sample, parsed, read, write


@dataclass(frozen=True)
class Answer:
    """zarrfs : what it does. peers : for each of `PEERS`, what it does; empty for nothing."""

    zarrfs: str
    peers: tuple[str, ...]


def ask(rows: Rows) -> dict[str, Answer]:
    with TemporaryDirectory() as directory:
        return {
            name: _ask(samples, Path(directory) / str(number))
            for number, (name, samples) in enumerate(rows.items())
        }


def _ask(samples: Sequence[Sample], place: Path) -> Answer:
    place.mkdir()
    zarrfs = ""
    peers = [""] * len(PEERS)
    for number, sample in enumerate(samples):
        array = place / str(number)
        expected = write(sample, array)
        zarrfs = _zarrfs(array, sample, expected)
        for position, ways in enumerate(PEERS.values()):
            for answer, reader in ways:
                if not peers[position] and finds(reader, array, sample.version, expected):
                    peers[position] = answer
    return Answer(zarrfs, tuple(peers))


def _zarrfs(array: Path, sample: Sample, expected: Elements) -> str:
    """It has just encoded the array; elements of no fixed size have no file to write to."""
    try:
        found = read(array, sample.version)
    except DecodeError:
        return "I/O error"
    except ZarrfsError:
        return "refused"
    if not same(found, expected):
        raise AssertionError(f"zarrfs does not read what it has written: {sample.text}")
    fixed = parsed(array, sample.version).layout.data_type.fixed_size
    return "read, write" if fixed else "read"
