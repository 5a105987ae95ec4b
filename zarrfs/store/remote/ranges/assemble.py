"""Cuts the requested ranges out of the fetched pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from zarrfs.store.base import Blob, ByteRange, ObjectInfo
from zarrfs.store.ranges import resolve
from zarrfs.store.remote.requests import BadReply

Data = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an object from offset ``start``."""

    start: int
    data: Data


def cut(pieces: Sequence[Piece], ranges: Sequence[ByteRange], info: ObjectInfo) -> list[Blob]:
    """The ``ranges`` of the object that ``info`` describes, from ``pieces`` that contain them.

    Raises `BadReply` if the pieces do not contain them.
    """
    ordered = sorted(pieces, key=lambda piece: (piece.start, len(piece.data)))
    starts = [piece.start for piece in ordered]
    spans = [resolve(wanted, info.size) for wanted in ranges]
    fetched = sum(len(piece.data) for piece in pieces)
    # A view keeps the whole reply in memory. If most of the reply is not needed, copy.
    copy = fetched > 2 * sum(span.length for span in spans)
    blobs = []
    for span in spans:
        if span.start == span.stop:
            blobs.append(Blob(b"", info))
            continue
        at = bisect_right(starts, span.start) - 1
        # Pieces may overlap (a whole object beside its parts), so search further back.
        while at >= 0 and ordered[at].start + len(ordered[at].data) < span.stop:
            at -= 1
        if at < 0:
            raise BadReply("the reply lacks bytes that were asked for")
        piece = ordered[at]
        first, last = span.start - piece.start, span.stop - piece.start
        if first == 0 and last == len(piece.data):
            blobs.append(Blob(piece.data, info))
        else:
            view = memoryview(piece.data)[first:last]
            blobs.append(Blob(bytes(view) if copy else view, info))
    return blobs
