"""A new shard in the form that a store takes: pieces, some of which are yet to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from zarrfs.array.shards.parts import ObjectChanged, StoredPart
from zarrfs.array.shards.shard_writer import Piece
from zarrfs.errors import DecodeError, StoreConflict, StoreError
from zarrfs.store.base import Data, ObjectInfo
from zarrfs.store.write_parts import write_parts

# Bytes of the old shard that are in memory at once while they are copied to the new one.
LARGEST_STRETCH = 4 << 20
_MOST_STRETCHES = 512


class ShardParts(Sequence[Data]):
    """The bytes of a new shard, part by part; see `zarrfs.store.base.Put`.

    Untouched inner chunks are read from the old shard when the store reaches them. Iterating
    raises StoreConflict if the old shard has been replaced meanwhile, and StoreError.
    """

    def __init__(self, key: str, pieces: Iterable[Piece]) -> None:
        self._key = key
        self._pieces = list(_split(pieces))

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, number: Any) -> Any:
        # Stores only iterate.
        return list(self)[number]

    def __iter__(self) -> Iterator[Data]:
        for group in _groups(self._pieces):
            yield from self._read(group)

    def write_to(self, fd: int) -> None:
        """See `WritesItself`. Raises `OSError`, and as iterating does."""
        for group in _groups(self._pieces):
            first = group[0]
            # Many stretches are sooner read at once than copied one by one.
            if len(group) == 1 and isinstance(first, StoredPart):
                with self._explained():
                    first.write_to(fd)
            else:
                write_parts(fd, self._read(group))

    def _read(self, group: Sequence[Piece]) -> list[Data]:
        """The bytes of one group: pieces of new bytes, or stretches of one stored object."""
        stored = [piece for piece in group if isinstance(piece, StoredPart)]
        if not stored:
            return [piece for piece in group if not isinstance(piece, StoredPart)]
        first = stored[0]
        with self._explained():
            return list(first.read([(one.offset - first.offset, one.size) for one in stored]))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except ObjectChanged as error:
            raise StoreConflict(self._key, "changed while it was rewritten") from error
        except DecodeError as error:
            raise StoreError(self._key, f"cannot be copied: {error}") from error


def _split(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if not isinstance(piece, StoredPart) or 0 < piece.size <= LARGEST_STRETCH:
            yield piece
            continue
        for done in range(0, piece.size, LARGEST_STRETCH):
            yield piece.inner(done, min(LARGEST_STRETCH, piece.size - done))


def _groups(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces that are read with one request, in order."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        more = piece.size if isinstance(piece, StoredPart) else 0
        full = size + more > LARGEST_STRETCH or len(group) == _MOST_STRETCHES
        if group and (full or _source(group[-1]) is not _source(piece)):
            yield group
            group, size = [], 0
        group.append(piece)
        size += more
    if group:
        yield group


def _source(piece: Piece) -> ObjectInfo | None:
    return piece.info if isinstance(piece, StoredPart) else None
