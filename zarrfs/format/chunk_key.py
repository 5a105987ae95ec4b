"""Chunk key encodings: from a chunk's index to its key below the array's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from zarrfs.format.chunk_grid import Index


class ChunkKeyEncoding(Protocol):
    """Names the stored object of each chunk."""

    def key(self, index: Index) -> str:
        """The key of chunk ``index``, relative to the array."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultKeys:
    """``c/1/2`` or ``c.1.2``; ``c`` for a 0-dimensional array."""

    separator: str = "/"

    def key(self, index: Index) -> str:
        return self.separator.join(["c", *map(str, index)])


@dataclass(frozen=True, slots=True)
class V2Keys:
    """``1.2`` or ``1/2``; ``0`` for a 0-dimensional array."""

    separator: str = "."

    def key(self, index: Index) -> str:
        return self.separator.join(map(str, index)) or "0"


CHUNK_KEY_ENCODINGS: dict[str, Callable[..., ChunkKeyEncoding]] = {
    "default": DefaultKeys,
    "v2": V2Keys,
}
"""Encodings by name; each is called with the configuration's members."""
