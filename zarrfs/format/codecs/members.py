"""Streams of several consecutive members: gzip, zlib, bz2, lzma."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from zarrfs.bounds import most_members
from zarrfs.errors import DecodeError
from zarrfs.format.codec import Buffer, SizeBound

# Bytes that a member gets first, and at most. A decompressor copies the input that it did not need,
# so a short member must not get all following bytes.
_FIRST, _LARGEST = 1 << 10, 1 << 20


class Decompressor(Protocol):
    """The common interface of the decompressors of `bz2` and `lzma`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: Buffer, max_length: int) -> bytes: ...


def decode_members(
    data: Buffer,
    decoded: SizeBound,
    new_member: Callable[[], Decompressor],
    padding: bytes = b"",
) -> bytes:
    """Decode all members of ``data``, in time proportional to its length and to the output.

    padding : a byte that may follow the last member, any number of times.

    Raises DecodeError for a member that is cut short, for more bytes than ``decoded`` allows
    or for another exact size, and for more members than `most_members`.
    """
    view = memoryview(data).cast("B")
    parts: list[bytes] = []
    at = size = members = 0
    most = most_members(decoded.maximum)
    while at < len(view) or not members:
        if (members := members + 1) > most:
            raise DecodeError(f"has more than {most} members")
        at, size = _decode_member(new_member(), view, at, size, decoded.maximum, parts)
        if padding and view[at : at + 1] == padding and not bytes(view[at:]).strip(padding):
            break
    if decoded.exact and size != decoded.maximum:
        raise DecodeError(f"decodes to {size} bytes, expected {decoded.maximum}")
    return b"".join(parts)


def _decode_member(
    member: Decompressor, view: memoryview, at: int, size: int, maximum: int, parts: list[bytes]
) -> tuple[int, int]:
    """Append the output of the member at ``at``; returns its end, and the size of all parts."""
    step = _FIRST
    while not member.eof:
        given = view[at : at + step] if member.needs_input else view[:0]
        if member.needs_input and not given:
            raise DecodeError("the stream ends too early")
        part = member.decompress(given, maximum - size + 1)
        at, step = at + len(given), min(2 * step, _LARGEST)
        if part:
            parts.append(part)
            size += len(part)
        if size > maximum:
            raise DecodeError(f"decodes to more than {maximum} bytes")
    return at - len(member.unused_data), size
