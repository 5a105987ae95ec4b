"""``zstd``: one or more Zstandard frames (RFC 8878).

https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrfs.errors import DecodeError
from zarrfs.format.codec import BoundCompressor, Buffer, SizeBound
from zarrfs.format.codecs.native import libzstd

_MAGIC = 0xFD2FB528
_MAGIC_BYTES = _MAGIC.to_bytes(4, "little")
_SKIPPABLE_MAGIC = 0x184D2A50
_LARGEST_BLOCK = 1 << 17
# Most bytes that a thread's compressor may keep. Making a new one costs a tenth of the time for
# encoding 64 KiB, and next to nothing for larger inputs.
_LARGEST_KEPT = 4 << 20
# Bytes above which numcodecs encodes faster, although it makes a compressor for each chunk.
_LARGEST_BY_ZSTANDARD = 1 << 20

_threads = threading.local()


@dataclass(frozen=True, slots=True)
class ZstdCodec:
    """``level`` from -131072 to 22; ``checksum`` adds one to each frame."""

    level: int = 0
    checksum: bool = False

    def bind(self, decoded: SizeBound) -> BoundZstd:
        return BoundZstd(self, decoded)


def numcodecs_zstd(level: int = 0, checksum: Any = False) -> ZstdCodec:
    return ZstdCodec(level, bool(checksum))


@dataclass(frozen=True, slots=True)
class BoundZstd(BoundCompressor):
    codec: ZstdCodec
    decoded: SizeBound

    @property
    def verifies(self) -> bool:
        return self.codec.checksum

    def decode(self, data: Buffer, out: memoryview | None) -> Buffer:
        expected = self.decoded.maximum
        if not self.decoded.exact:
            self._check_size(data)
            return _decompress(data, None)
        if not expected:
            self._check_size(data)
            return b""
        # Uncleared memory is safe here, because none of its old bytes become visible.
        target = np.empty(expected, np.uint8).data if out is None else out
        library = libzstd()
        # Mostly the data are one frame. The library also knows older formats, which are not valid.
        if library is not None and data[:4] == _MAGIC_BYTES and library.fills(data, target):
            return target
        self._check_size(data)
        return _decompress(data, target)

    def decode_evenly(self, data: Sequence[Buffer], out: memoryview) -> bool:
        library = libzstd()
        if library is None or not self.decoded.exact or not self.decoded.maximum:
            return False
        if any(each[:4] != _MAGIC_BYTES for each in data):
            return False
        return library.fills_evenly(data, out)

    def _check_size(self, data: Buffer) -> None:
        known, at_most = content_size(data)
        if known is not None:
            self.decoded.check(known, "Zstandard frames hold")
        elif not self.decoded.exact and at_most > self.decoded.maximum:
            raise DecodeError(f"Zstandard frames may hold more than {self.decoded.maximum} bytes")

    def encode(self, data: Buffer) -> Buffer:
        return self.encode_all([data])[0]

    def encode_all(self, data: Sequence[Buffer]) -> list[Buffer]:
        """Each result is one frame whose header gives its size."""
        codec = self.codec
        # Imported here, so that the start of a mount does not wait for it.
        if any(len(each) > _LARGEST_BY_ZSTANDARD for each in data):
            from numcodecs import zstd  # noqa: PLC0415

            return [zstd.compress(each, codec.level, codec.checksum) for each in data]

        from zstandard import ZstdCompressor  # noqa: PLC0415

        kept = getattr(_threads, "compressor", None)
        if kept is None or kept[0] != codec:
            kept = codec, ZstdCompressor(level=codec.level, write_checksum=codec.checksum)
        _threads.compressor = None
        compress = kept[1].compress
        encoded: list[Buffer] = [compress(each) for each in data]
        if kept[1].memory_size() <= _LARGEST_KEPT:
            _threads.compressor = kept
        return encoded


def _decompress(data: Buffer, target: memoryview | None) -> Buffer:
    """Decode all frames of ``data``, into ``target`` if given. Raises DecodeError."""
    from numcodecs import zstd  # noqa: PLC0415 (see `encode_all`)

    try:
        decoded: bytes = zstd.decompress(data, target)
    except (RuntimeError, ValueError) as error:
        raise DecodeError(f"Zstandard: {error}") from error
    return decoded if target is None else target


def content_size(data: Buffer) -> tuple[int | None, int]:
    """Decoded size of all frames, if each header gives one; and the most they can decode to.

    Reads only frame and block headers (RFC 8878, section 3.1.1), and allocates no memory by the
    size in a header. Raises DecodeError if the frames do not end exactly with ``data``.
    """
    known: int | None = 0
    at_most = 0
    position = 0
    view = memoryview(data)
    if view.nbytes == 0:
        raise DecodeError("no Zstandard frame")
    while position < len(view):
        magic = int.from_bytes(view[position : position + 4], "little")
        if magic & ~0xF == _SKIPPABLE_MAGIC:
            size = int.from_bytes(view[position + 4 : position + 8], "little")
            position += 8 + size
            continue
        if magic != _MAGIC:
            raise DecodeError("not a Zstandard frame")
        frame_size, position, checksum = _frame_header(view, position + 4)
        block_bound, position = _blocks(view, position, len(view))
        position += 4 * checksum
        at_most += block_bound
        if frame_size is None or known is None:
            known = None
        else:
            known += frame_size
    if position != len(view):
        raise DecodeError("a Zstandard frame is cut short")
    return known, at_most


def _frame_header(view: memoryview, position: int) -> tuple[int | None, int, bool]:
    """Content size (None: not given), position of the first block, whether a checksum follows."""
    if position >= len(view):
        raise DecodeError("a Zstandard frame is cut short")
    descriptor = view[position]
    single_segment = descriptor >> 5 & 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    field = (single_segment, 2, 4, 8)[descriptor >> 6]
    position += 1 + (not single_segment) + dictionary
    content_size = int.from_bytes(view[position : position + field], "little") if field else None
    if field == 2:
        content_size = 256 + (content_size or 0)
    return content_size, position + field, bool(descriptor >> 2 & 1)


def _blocks(view: Buffer, position: int, stop: int) -> tuple[int, int]:
    """The most that a frame's blocks decode to, and the position behind the last block."""
    at_most = 0
    last = False
    while not last:
        if position + 3 > stop:
            raise DecodeError("a Zstandard frame is cut short")
        header = int.from_bytes(view[position : position + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == 3:
            raise DecodeError("a Zstandard block of a reserved type")
        position += 3 + (1 if kind == 1 else size)
        at_most += _LARGEST_BLOCK if kind == 2 else size
    return at_most, position
