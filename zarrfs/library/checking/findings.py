"""Findings of a check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from zarrfs.format.chunk_grid import Index

Kind = Literal[
    "metadata", "chunk", "shard", "lost", "orphan", "leftover", "access", "deviation", "aside"
]

NOTES: frozenset[Kind] = frozenset(("deviation", "aside"))
"""Kinds of findings that are not problems."""

MOST_INDICES = 16


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    kind : ``metadata``, a document that cannot be served; ``chunk``, one that does not
        decode; ``shard``, one that is torn or holds such chunks; ``lost``, a shard of which an
        earlier repair could not save all, as long as that is missing; ``orphan``, an object that
        belongs to nothing; ``leftover``, a temporary file of a killed writer; ``access``,
        something that the store does not give out. Notes: ``deviation`` from the
        specification that zarrfs serves nevertheless; ``aside``, a damaged object that an
        earlier repair has set aside.
    key : of the object in the store.
    reason : one line.
    chunks : the first of the chunks that cannot be read, as the array counts them.
    unreadable, readable : how many chunks of the object are, and are not, so.
    repaired : what was done about it; None: nothing.
    unrepaired : why a repair could not mend it, or not all of it; None: it did, or was not asked.
    """

    kind: Kind
    key: str
    reason: str
    chunks: tuple[Index, ...] = ()
    unreadable: int = 0
    readable: int = 0
    repaired: str | None = None
    unrepaired: str | None = None

    @property
    def is_mended(self) -> bool:
        """Whether nothing is wrong any more."""
        return self.repaired is not None and self.unrepaired is None

    @property
    def is_note(self) -> bool:
        return self.kind in NOTES

    def as_json(self) -> Mapping[str, Any]:
        document: dict[str, Any] = {"kind": self.kind, "key": self.key, "reason": self.reason}
        if self.unreadable:
            document |= {
                "chunks": [list(index) for index in self.chunks],
                "unreadable": self.unreadable,
                "readable": self.readable,
            }
        if self.repaired is not None:
            document["repaired"] = self.repaired
        if self.unrepaired is not None:
            document["unrepaired"] = self.unrepaired
        return document


@dataclass
class Totals:
    """Counts of checked objects and of problems.

    unverified : chunks without a checksum: they decode, but damage to their bytes may not show.
    """

    groups: int = 0
    arrays: int = 0
    objects: int = 0
    chunks: int = 0
    unverified: int = 0
    problems: int = 0
    repaired: int = 0
    notes: int = 0
