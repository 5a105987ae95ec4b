"""Changes that could not be stored when the mount ended, kept for the next mount.

One file for each chunk, below a directory of the source's own: a line of JSON that says
what follows, the chunk, and a bit for each element that was changed; behind all of it a
hash, so that a file cut short is not taken for data.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.tile_changes import Bits, Bytes, TileCopy
from zarrfs.errors import JournalError
from zarrfs.format.chunk_grid import Index

_HASH_SIZE = 32
_SUFFIX = ".chunk"
_GROWTH_SUFFIX = ".growth"
_CONFLICTS = "conflicts"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JournalEntry:
    """One chunk with changes.

    path : of the array below the source.
    layout : identifies shape, chunk grid and data type of the array at that time.
    written_ns : when the oldest change was made, in nanoseconds since the epoch.
    chunk : its elements; only those ``marked`` mean something.
    parts : of other elements: place, bytes in memory, and which of these mean something.
    """

    file: Path
    path: str
    index: Index
    layout: str
    written_ns: int
    chunk: NDArray[Any]
    marked: NDArray[np.bool_]
    parts: list[tuple[Index, Bytes, Bits]]


class GrowthEntry(NamedTuple):
    """An array that has grown, and whose metadata do not say so yet.

    path : of the array below the source.
    shape : that the metadata say.
    rows : how long the first axis is to become; its elements are stored already, as far as
        they are not in the journal themselves.
    """

    path: str
    shape: tuple[int, ...]
    rows: int


class Journal:
    """A directory of entries, readable by its owner only."""

    def __init__(self, directory: str) -> None:
        """Nothing is created before there is something to save."""
        self.directory = Path(directory)

    def save(self, path: str, index: Index, layout: str, dirty: TileCopy) -> Path:
        """Keep a tile; returns when that is durable. Raises JournalError."""
        chunk, marked = dirty.dense()
        header = {
            "path": path,
            "index": list(index),
            "layout": layout,
            "written_ns": time.time_ns() - int(1e9 * (time.monotonic() - dirty.since)),
            "shape": list(chunk.shape),
            "item_size": chunk.dtype.itemsize,
            "parts": [
                [place, value.tobytes().hex(), known.tobytes().hex()]
                for place, (value, known) in dirty.parts.items()
            ],
        }
        parts = [
            json.dumps(header).encode() + b"\n",
            chunk.tobytes(),
            np.packbits(marked).tobytes(),
        ]
        digest = blake2b(digest_size=_HASH_SIZE)
        for part in parts:
            digest.update(part)
        name = blake2b(f"{path}\0{index}".encode(), digest_size=16).hexdigest() + _SUFFIX
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._write(name, [*parts, digest.digest()])
        except OSError as error:
            raise JournalError(f"{self.directory}: {error.strerror}") from error

    def _write(self, name: str, parts: list[bytes]) -> Path:
        temporary = self.directory / f".{name}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        final = self.directory / name
        temporary.rename(final)
        self._sync()
        return final

    def save_growth(self, entry: GrowthEntry) -> Path:
        """Keep how long an array is to become; durable when it returns. Raises JournalError."""
        text = json.dumps({"path": entry.path, "shape": entry.shape, "rows": entry.rows})
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._write(_growth_name(entry.path), [text.encode()])
        except OSError as error:
            raise JournalError(f"{self.directory}: {error.strerror}") from error

    def growths(self) -> Iterator[GrowthEntry]:
        """All arrays of which that is kept. Raises JournalError for a damaged entry."""
        for file in sorted(self.directory.glob(f"*{_GROWTH_SUFFIX}")):
            try:
                found = json.loads(file.read_bytes())
                yield GrowthEntry(found["path"], tuple(found["shape"]), found["rows"])
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise JournalError(f"{file}: is damaged") from error

    def remove_growth(self, entry: GrowthEntry) -> None:
        """The metadata say it, or will never."""
        (self.directory / _growth_name(entry.path)).unlink()
        self._sync()

    def entries(self) -> Iterator[JournalEntry]:
        """All chunks that are kept. Raises JournalError for a damaged one."""
        if not self.directory.is_dir():
            return
        for file in sorted(self.directory.glob(f"*{_SUFFIX}")):
            yield _read(file)

    def remove(self, entry: JournalEntry) -> None:
        """Its changes are stored."""
        entry.file.unlink()
        self._sync()

    def set_aside(self, entry: JournalEntry) -> Path:
        """Its changes may not be stored over what is newer; somebody has to look at them."""
        place = self.directory / _CONFLICTS
        place.mkdir(mode=0o700, exist_ok=True)
        kept = place / f"{entry.written_ns}-{entry.file.name}"
        entry.file.rename(kept)
        self._sync()
        return kept

    def _sync(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _growth_name(path: str) -> str:
    return blake2b(path.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest() + (
        _GROWTH_SUFFIX
    )


def _read(file: Path) -> JournalEntry:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise JournalError(f"{file}: {error.strerror}") from error
    body, stored = data[:-_HASH_SIZE], data[-_HASH_SIZE:]
    if blake2b(body, digest_size=_HASH_SIZE).digest() != stored:
        raise JournalError(f"{file}: is damaged")
    line, _, rest = body.partition(b"\n")
    header = json.loads(line)
    shape = tuple(header["shape"])
    elements = int(np.prod(shape, dtype=np.int64))
    size = elements * header["item_size"]
    chunk = np.frombuffer(rest[:size], f"V{header['item_size']}").reshape(shape)
    marked = np.unpackbits(np.frombuffer(rest[size:], np.uint8), count=elements)
    return JournalEntry(
        file,
        header["path"],
        tuple(header["index"]),
        header["layout"],
        header["written_ns"],
        chunk,
        marked.astype(bool).reshape(shape),
        [
            (
                tuple(place),
                np.frombuffer(bytes.fromhex(value), np.uint8),
                np.frombuffer(bytes.fromhex(known), bool),
            )
            for place, value, known in header.get("parts", [])
        ],
    )
