"""The bytes of an entry: a line of JSON, the changes that it describes, and a hash of both.

The changes of a chunk are one bit per element, then the new elements, then the parts of elements.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from zarrfs.cache.write.journal.pending import Bits, Bytes, Change, PendingChunk, PendingGrowth
from zarrfs.errors import JournalError
from zarrfs.format.chunk_grid import Index, Shape

FORMAT = 2
HASH_SIZE = 32
_LARGEST_LINE = 1 << 20
_LARGEST_GROWTH = 64 << 10
_PIECE = 1 << 20
_MOST_AXES = 64


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """The header of an entry, which precedes its elements.

    written_ns : when the oldest change was made, in nanoseconds since the epoch.
    shape : of the chunk.
    item_size : bytes of an element.
    marked : how many elements are new.
    parts : how many elements are new in part.
    length : bytes of the first line.
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
    parts: int
    length: int

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        elements = math.prod(self.shape)
        part = 8 * len(self.shape) + 2 * self.item_size
        body = self.marked * self.item_size + -(-elements // 8) + self.parts * part
        return self.length + body + HASH_SIZE


def chunk_pieces(pending: PendingChunk, written_ns: int) -> Iterator[bytes]:
    """The bytes of an entry, some at a time."""
    change = pending.change
    flat = np.ascontiguousarray(change.elements).reshape(-1)
    bits = np.ascontiguousarray(change.mask, bool).reshape(-1)
    size = flat.dtype.itemsize
    header = {
        "format": FORMAT,
        "path": pending.path,
        "index": list(change.index),
        "layout": pending.layout,
        "written_ns": written_ns,
        "base": pending.base,
        "old": pending.old,
        "shape": list(change.elements.shape),
        "item_size": size,
        "marked": int(np.count_nonzero(bits)),
        "parts": len(change.parts),
    }

    def body() -> Iterator[bytes]:
        yield json.dumps(header).encode() + b"\n"
        yield np.packbits(bits).tobytes()
        step = max(1, _PIECE // max(1, size))
        plain = flat.view(f"V{size}")
        for start in range(0, len(plain), step):
            yield plain[start : start + step][bits[start : start + step]].tobytes()
        for place, (value, known) in change.parts.items():
            yield np.array(place, "<i8").tobytes() + value.tobytes() + known.tobytes()

    return _hashed(body())


def growth_pieces(growth: PendingGrowth) -> Iterator[bytes]:
    """The bytes of an entry for the growth of an array."""
    text = {
        "format": FORMAT,
        "path": growth.path,
        "shape": list(growth.shape),
        "rows": growth.rows,
    }
    return _hashed(iter([json.dumps(text).encode() + b"\n"]))


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
    """The header of an entry of ``size`` bytes.

    Raises OSError, and JournalError for a damaged entry.
    """
    line = file.readline(_LARGEST_LINE)
    if not line.endswith(b"\n"):
        raise JournalError("is damaged: its first line does not end")
    header = _header(_parsed(line), len(line))
    if header.size != size:
        raise JournalError(f"is damaged: it has {size} bytes, and says {header.size}")
    return header


def read_change(file: BinaryIO, header: ChunkHeader) -> Change:
    """The changes of an entry, whose file has the size that its header says.

    Allocates memory for one chunk of the shape in the header. Raises OSError, and JournalError for
    a damaged entry.
    """
    reader = _HashedReader(file)
    reader.read(header.length)
    elements = np.empty(math.prod(header.shape), f"V{header.item_size}")
    packed = np.empty(-(-len(elements) // 8), np.uint8)
    reader.fill(packed)
    mask = np.unpackbits(packed, count=len(elements)).astype(bool)
    if int(np.count_nonzero(mask)) != header.marked:
        raise JournalError("is damaged: its marks are wrong")
    step = max(1, _PIECE // header.item_size)
    for start in range(0, len(elements), step):
        where = mask[start : start + step]
        new = np.empty(int(np.count_nonzero(where)), elements.dtype)
        reader.fill(new.view(np.uint8).reshape(-1))
        elements[start : start + step][where] = new
    parts = dict(_parts(reader, header))
    reader.check()
    shape = header.shape
    return Change(header.index, elements.reshape(shape), mask.reshape(shape), parts)


def _parts(
    reader: _HashedReader, header: ChunkHeader
) -> Iterator[tuple[Index, tuple[Bytes, Bits]]]:
    size, axes = header.item_size, len(header.shape)
    for _ in range(header.parts):
        place = tuple(np.frombuffer(reader.read(8 * axes), "<i8").tolist())
        value, known = reader.read(size), reader.read(size)
        if not all(0 <= at < length for at, length in zip(place, header.shape, strict=True)):
            raise JournalError("is damaged: part of an element lies nowhere")
        yield place, (np.frombuffer(value, np.uint8), np.frombuffer(known, np.uint8) != 0)


class _HashedReader:
    """Reads a file from its beginning, and computes the hash of the bytes read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = blake2b(digest_size=HASH_SIZE)

    def read(self, size: int) -> bytes:
        data = np.empty(size, np.uint8)
        self.fill(data)
        return data.tobytes()

    def fill(self, memory: NDArray[np.uint8]) -> None:
        view = memory.data
        for start in range(0, len(view), _PIECE):
            piece = view[start : start + _PIECE]
            while piece:
                count = self._file.readinto(piece)  # type: ignore[attr-defined]
                if not count:
                    raise JournalError("is damaged: it ends early")
                self._hash.update(piece[:count])
                piece = piece[count:]

    def check(self) -> None:
        """Compare the hash with the stored one, which follows."""
        if self._file.read(HASH_SIZE + 1) != self._hash.digest():
            raise JournalError("is damaged: its hash is wrong")


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


def _header(found: dict[str, Any], length: int) -> ChunkHeader:
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
        parts=_number(found, "parts"),
        length=length,
    )
    if (
        len(header.index) != len(header.shape)
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
