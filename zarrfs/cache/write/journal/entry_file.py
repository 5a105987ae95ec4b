"""The bytes of an entry: a line of JSON, the changes that it describes, and a hash of both.

The changes of a chunk are one bit per unit, then the new units; see `Change`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

import numpy as np

from zarrfs.cache.write.journal.pending import Change, PendingChunk, PendingGrowth
from zarrfs.errors import JournalError
from zarrfs.format.chunk_grid import Index, Shape

FORMAT = 3
HASH_SIZE = 32
_LARGEST_LINE = 1 << 20
_LARGEST_GROWTH = 64 << 10
_PIECE = 1 << 20
_MOST_AXES = 65


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """The header of an entry, which precedes its units.

    written_ns : when the oldest change was made, in nanoseconds since the epoch.
    shape : of the units.
    item_size : bytes of a unit.
    marked : how many units are new.
    path, layout, base, old : see `PendingChunk`.
    """

    path: str
    index: Index
    layout: str
    written_ns: int
    base: str | None
    old: str | None
    shape: Shape
    item_size: int
    marked: int

    @property
    def body(self) -> int:
        """Bytes of the file behind its first line."""
        return -(-math.prod(self.shape) // 8) + self.marked * self.item_size + HASH_SIZE


def chunk_pieces(pending: PendingChunk, written_ns: int) -> Iterator[bytes]:
    """The bytes of an entry, some at a time."""
    change = pending.change
    flat = np.ascontiguousarray(change.units).reshape(-1)
    bits = np.ascontiguousarray(change.new).reshape(-1)
    header = ChunkHeader(
        pending.path,
        change.index,
        pending.layout,
        written_ns,
        pending.base,
        pending.old,
        change.units.shape,
        flat.itemsize,
        int(np.count_nonzero(bits)),
    )

    def body() -> Iterator[bytes]:
        yield json.dumps({"format": FORMAT, **asdict(header)}).encode() + b"\n"
        yield np.packbits(bits).tobytes()
        step = max(1, _PIECE // flat.itemsize)
        for start in range(0, len(flat), step):
            yield flat[start : start + step][bits[start : start + step]].tobytes()

    return _hashed(body())


def growth_pieces(growth: PendingGrowth) -> Iterator[bytes]:
    """The bytes of an entry for the growth of an array."""
    text = json.dumps({"format": FORMAT, **growth._asdict()})
    return _hashed(iter([text.encode() + b"\n"]))


def read_growth(file: BinaryIO, size: int) -> PendingGrowth:
    """The growth in an entry. Raises OSError, and JournalError for a damaged entry."""
    if size > _LARGEST_GROWTH:
        raise JournalError("is too large for an entry")
    data = file.read(size)
    line, separator, stored = data.partition(b"\n")
    if blake2b(line + separator, digest_size=HASH_SIZE).digest() != stored:
        raise JournalError("is damaged: its hash is wrong")
    found = _parsed(line)
    return PendingGrowth(_text(found, "path"), _shape(found, "shape"), _number(found, "rows"))


def read_header(file: BinaryIO, size: int) -> ChunkHeader:
    """The header of an entry of ``size`` bytes; the rest of it follows.

    Raises OSError, and JournalError for a damaged entry.
    """
    line = file.readline(_LARGEST_LINE)
    if not line.endswith(b"\n"):
        raise JournalError("is damaged: its first line does not end")
    header = _header(_parsed(line))
    if (says := len(line) + header.body) != size:
        raise JournalError(f"is damaged: it has {size} bytes, and says {says}")
    return header


def read_change(file: BinaryIO, header: ChunkHeader) -> Change:
    """The changes of an entry, whose file has the size that its header says.

    Allocates memory for one chunk of the shape in the header. Raises OSError, and JournalError for
    a damaged entry.
    """
    file.seek(0)
    digest = blake2b(file.readline(_LARGEST_LINE), digest_size=HASH_SIZE)

    def read(size: int) -> bytes:
        data = file.read(size)
        if len(data) < size:
            raise JournalError("is damaged: it ends early")
        digest.update(data)
        return data

    units = np.empty(math.prod(header.shape), f"V{header.item_size}")
    packed = np.frombuffer(read(-(-len(units) // 8)), np.uint8)
    new = np.unpackbits(packed, count=len(units)).astype(bool)
    if int(np.count_nonzero(new)) != header.marked:
        raise JournalError("is damaged: its marks are wrong")
    step = max(1, _PIECE // header.item_size)
    for start in range(0, len(units), step):
        where = new[start : start + step]
        some = read(int(np.count_nonzero(where)) * header.item_size)
        units[start : start + step][where] = np.frombuffer(some, units.dtype)
    if file.read(HASH_SIZE + 1) != digest.digest():
        raise JournalError("is damaged: its hash is wrong")
    return Change(header.index, units.reshape(header.shape), new.reshape(header.shape))


def _hashed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    digest = blake2b(digest_size=HASH_SIZE)
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JournalError("is damaged: its first line is not JSON") from error
    if not isinstance(found, dict):
        raise JournalError("is damaged: its first line is not an object")
    return found


def _header(found: dict[str, Any]) -> ChunkHeader:
    if (number := found.get("format")) != FORMAT:
        raise JournalError(f"has the format {number!r}, which a later version may read")
    header = ChunkHeader(
        path=_text(found, "path"),
        index=_shape(found, "index"),
        layout=_text(found, "layout"),
        written_ns=_number(found, "written_ns"),
        base=None if found.get("base") is None else _text(found, "base"),
        old=None if found.get("old") is None else _text(found, "old"),
        shape=_shape(found, "shape"),
        item_size=_number(found, "item_size"),
        marked=_number(found, "marked"),
    )
    if (
        len(header.index) + 1 != len(header.shape)
        or not header.item_size
        or header.marked > math.prod(header.shape)
    ):
        raise JournalError("is damaged: its first line does not describe a chunk")
    return header


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise _wrong(name)
    return value


def _number(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    # True is an int, too.
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise _wrong(name)
    return value


def _shape(found: dict[str, Any], name: str) -> Shape:
    value = found.get(name)
    if not isinstance(value, list) or len(value) > _MOST_AXES:
        raise _wrong(name)
    return tuple(_number({name: length}, name) for length in value)


def _wrong(name: str) -> JournalError:
    return JournalError(f"is damaged: its first line has no {name!r} as an entry does")
