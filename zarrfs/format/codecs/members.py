"""Streams of several consecutive members: gzip, zlib, bz2, lzma."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from lzma import LZMAError
from typing import Protocol

import numpy as np

from zarrfs.bounds import most_members
from zarrfs.errors import DecodeError, reason_of
from zarrfs.format.codec import BoundCompressor, Buffer, SizeBound

# Bytes that a member gets first, and at most. A decompressor copies the input that it did not need,
# so a short member must not get all following bytes.
_FIRST, _LARGEST = 1 << 10, 1 << 20
# Bytes that a decompressor returns at most at once.
_PART = 1 << 20
_ZEROS = re.compile(rb"\0+")


class Decompressor(Protocol):
    """The common interface of the decompressors of `bz2` and `lzma`."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: Buffer, max_length: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class BoundStream(BoundCompressor):
    """
    decompressor : makes one for a member.
    padded : see `decode_members`.
    has_checksum : whether each member has one.
    fills : decodes data of one member that fill the memory, in one step; False if it cannot.
    """

    decoded: SizeBound
    decompressor: Callable[[], Decompressor]
    compress: Callable[[Buffer], Buffer]
    padded: bool
    has_checksum: bool
    fills: Callable[[Buffer, memoryview], bool] | None = None

    @property
    def verifies(self) -> bool:
        return self.has_checksum

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        if not self.decoded.exact:
            out = None
        elif out is None:
            # Uncleared memory is safe here, because none of its old bytes become visible.
            out = np.empty(self.decoded.maximum, np.uint8).data
        if out is not None and self.fills is not None and self.fills(data, out):
            return out
        try:
            return decode_members(data, self.decoded, self.decompressor, self.padded, out)
        except (OSError, EOFError, ValueError, MemoryError, LZMAError, zlib.error) as error:
            raise DecodeError(reason_of(error)) from error

    def encode(self, data: Buffer) -> Buffer:
        return self.compress(data)


def decode_members(
    data: Buffer,
    decoded: SizeBound,
    new_member: Callable[[], Decompressor],
    padded: bool,
    out: memoryview | None = None,
) -> Buffer:
    """Decode all members of ``data``, in time proportional to its length and to the output.

    padded : whether zeros may follow a member, in any number.
    out : memory of the result, if its size is exact.

    Raises DecodeError for a member that is cut short, for more bytes than ``decoded`` allows
    or for another exact size, and for more members than `most_members`.
    """
    view = memoryview(data).cast("B")
    output = _Output(decoded, out)
    at = members = 0
    most = most_members(decoded.maximum)
    while at < len(view) or not members:
        if (members := members + 1) > most:
            raise DecodeError(f"has more than {most} members")
        at = _decode_member(new_member(), view, at, output)
        if padded and (zeros := _ZEROS.match(view, at)) is not None:
            at = zeros.end()
    return output.end()


class _Output:
    """The output of all members: in memory of the exact size, or in parts if that is unknown."""

    def __init__(self, decoded: SizeBound, out: memoryview | None) -> None:
        self._decoded = decoded
        self._size = 0
        self._parts: list[bytes] = []
        self._memory = out

    @property
    def room(self) -> int:
        """Bytes that a decompressor may return at once: one more than fit shows that it is bad."""
        return min(_PART, self._decoded.maximum - self._size + 1)

    def add(self, part: bytes) -> None:
        """Raises DecodeError if there are too many bytes."""
        size = self._size + len(part)
        if size > self._decoded.maximum:
            raise DecodeError(f"decodes to more than {self._decoded.maximum} bytes")
        if self._memory is not None:
            self._memory[self._size : size] = part
        elif part:
            self._parts.append(part)
        self._size = size

    def end(self) -> Buffer:
        """All bytes. Raises DecodeError if there are too few."""
        expected = self._decoded.maximum
        if self._decoded.exact and self._size != expected:
            raise DecodeError(f"decodes to {self._size} bytes, expected {expected}")
        return b"".join(self._parts) if self._memory is None else self._memory


def _decode_member(member: Decompressor, view: memoryview, at: int, output: _Output) -> int:
    """Add the output of the member at ``at``; returns its end."""
    step = _FIRST
    while not member.eof:
        given = view[at : at + step] if member.needs_input else view[:0]
        if member.needs_input and not given:
            raise DecodeError("the stream ends too early")
        output.add(member.decompress(given, output.room))
        at, step = at + len(given), min(2 * step, _LARGEST)
    return at - len(member.unused_data)
