"""Decompresses members of zip files, as many bytes as are requested at a time."""

from __future__ import annotations

import bz2
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from zarrfs import bounds

Stream = Callable[[int], bytes]
"""Returns at most that many of the next decompressed bytes; none at the end."""

_STEP = 1 << 20
# The largest dictionary of the presets of LZMA.
_LARGEST_DICTIONARY = 64 << 20
_HEADER = struct.Struct("<BBHBI")


class Source(Protocol):
    """The compressed bytes."""

    def read(self, size: int, /) -> bytes: ...


def deflate_stream(file: Source) -> Stream:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    left = b""

    def read(most: int) -> bytes:
        nonlocal left
        while not inflate.eof:
            left = left or file.read(_STEP)
            ended = not left
            data = inflate.decompress(left, most)
            left = inflate.unconsumed_tail
            if data or ended:
                return data
        return b""

    return read


def bz2_stream(file: Source) -> Stream:
    return _stream(file, bz2.BZ2Decompressor())


def lzma_stream(file: Source) -> Stream:
    """Raises LZMAError, OutOfBoundsError.

    https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 5.8
    """
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    _, _, size, packed, dictionary = _HEADER.unpack(header)
    rest, lc = divmod(packed, 9)
    pb, lp = divmod(rest, 5)
    if size != 5 or pb > 4:
        raise lzma.LZMAError("the properties of the LZMA stream are invalid")
    if dictionary > _LARGEST_DICTIONARY:
        raise bounds.OutOfBoundsError(
            f"its LZMA stream needs {dictionary} bytes for its dictionary, "
            f"at most {_LARGEST_DICTIONARY} are allowed"
        )
    chain = [{"id": lzma.FILTER_LZMA1, "dict_size": dictionary, "lc": lc, "lp": lp, "pb": pb}]
    return _stream(file, lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=chain))


def read_between(stream: Stream, start: int, end: int, member: zipfile.ZipInfo) -> bytes:
    """The decompressed bytes from ``start`` to ``end``. All of them are held against the checksum.

    Raises BadZipFile, and what the stream raises.
    """
    parts = []
    at = 0
    while at < end:
        # Bytes before the start are decompressed and dropped.
        wanted = start - at if at < start else end - at
        if not (part := stream(min(wanted, _STEP))):
            raise EOFError
        if at >= start:
            parts.append(part)
        at += len(part)
    data = b"".join(parts)
    whole = start <= 0 and end == member.file_size
    if whole and (zlib.crc32(data) != member.CRC or stream(1)):
        raise zipfile.BadZipFile(f"the checksum of {bounds.shown(member.filename)} is wrong")
    return data


def _stream(file: Source, decompressor: Any) -> Stream:
    def read(most: int) -> bytes:
        while not decompressor.eof:
            more = file.read(_STEP) if decompressor.needs_input else b""
            data: bytes = decompressor.decompress(more, most)
            if data or (decompressor.needs_input and not more):
                return data
        return b""

    return read


STREAMS = {
    zipfile.ZIP_DEFLATED: deflate_stream,
    zipfile.ZIP_BZIP2: bz2_stream,
    zipfile.ZIP_LZMA: lzma_stream,
}
"""How to decompress members, by the number of their compression method."""
