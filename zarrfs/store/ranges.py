"""Checks keys, and computes byte ranges: against an object's size, and merged into requests."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from zarrfs.errors import StoreError
from zarrfs.store.base import ByteRange


class Span(NamedTuple):
    """Bytes ``start <= i < stop`` of an object, or of a decoded chunk."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


def resolve(wanted: ByteRange, size: int) -> Span:
    """The part of an object of ``size`` bytes that ``wanted`` names, cut at both ends."""
    start = wanted.offset if wanted.offset >= 0 else size + wanted.offset
    stop = min(max(start + wanted.length, 0), size)
    return Span(min(max(start, 0), stop), stop)


def merge(spans: Sequence[Span], *, max_gap: int, max_length: int) -> list[Span]:
    """The fewest requests that cover ``spans``, in ascending order.

    Two spans share a request if at most ``max_gap`` unneeded bytes lie between them and the request
    stays within ``max_length``. A span is never split, so a span longer than ``max_length`` is a
    request of its own. Empty spans need no request.
    """
    merged: list[Span] = []
    for span in sorted([s for s in spans if s.stop > s.start], key=itemgetter(0)):
        if merged:
            last = merged[-1]
            joined = Span(last.start, max(last.stop, span.stop))
            overlaps = joined == last
            near = span.start - last.stop <= max_gap
            if overlaps or (near and joined.length <= max_length):
                merged[-1] = joined
                continue
        merged.append(span)
    return merged


def check_key(key: str) -> str:
    """Return ``key`` itself if it is well-formed.

    Raises `StoreError` for a key that could leave the store's root or that no store can hold:
    an absolute key, one with empty, ``.`` or ``..`` components, or one with a NUL byte.
    """
    enclosed = f"/{key}/"
    if "//" in enclosed or "/./" in enclosed or "/../" in enclosed or "\0" in key:
        raise StoreError(key, "is not a valid key")
    return key
