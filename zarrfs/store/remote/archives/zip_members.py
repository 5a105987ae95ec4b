"""Members of a zip file.

https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from zarrfs import bounds
from zarrfs.store.remote.archives.container import RangedFile, SharedFile, WatchedFile
from zarrfs.store.remote.archives.contents import Members
from zarrfs.store.remote.archives.damage import lasting
from zarrfs.store.remote.archives.zip_streams import STREAMS, read_between
from zarrfs.store.remote.requests import BadReply

_DIRECTORY_ENTRY = b"PK\1\2"
_ENTRY_SIZE = 46
_HEADER, _HEADER_SIZE = b"PK\3\4", 30
_HEADER_LENGTHS, _HEADER_LENGTHS_AT = struct.Struct("<2H"), 26
_SLACK = 64
_ENCRYPTED, _UTF8 = 0x1, 0x800
_LENGTHS = struct.Struct("<3H")
_LENGTHS_AT = 28


class ZipMembers(Members[zipfile.ZipInfo]):
    """Reads members by path: a whole one, as it is stored, with one request.

    file : open for reading; closed with this object.

    Raises `zipfile.BadZipFile` and OutOfBoundsError.
    """

    def __init__(self, file: RangedFile | SharedFile) -> None:
        super().__init__(file)
        members = _members(file)
        # Where the bytes of a member begin, by the place of its header.
        self._begins: dict[int, int] = {}
        _check_overlaps(members)
        for member in members:
            self.add(member.filename, None if member.is_dir() else member)

    def describe(self, file: zipfile.ZipInfo) -> dict[str, Any]:
        return {"size": file.file_size, "CRC": file.CRC}

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        member = self.find(path.strip("/"))
        if member is None:
            raise IsADirectoryError(path)
        if member.flag_bits & _ENCRYPTED:
            raise BadReply(f"{bounds.shown(member.filename)} is encrypted")
        end = min(end, member.file_size)
        with lasting():
            if member.compress_type != zipfile.ZIP_STORED:
                if (open_stream := STREAMS.get(member.compress_type)) is None:
                    method = member.compress_type
                    raise BadReply(f"is compressed by method {method}, which is not served")
                stream = open_stream(_Compressed(self.read_stored, member))
                return read_between(stream, start, end, member)
            data = bytes(self.read_stored(member, start, end))
            if len(data) != max(end - start, 0):
                raise EOFError
            if len(data) == member.file_size and zlib.crc32(data) != member.CRC:
                raise zipfile.BadZipFile(f"Bad CRC-32 for file {bounds.shown(member.filename)}")
            return data

    def read_stored(self, member: zipfile.ZipInfo, start: int, stop: int) -> memoryview:
        """Bytes of a member in the form in which it is stored."""
        place, stop = member.header_offset, max(start, min(stop, member.compress_size))
        if (begin := self._begins.get(place)) is not None:
            return self._file.read_at(begin + start, begin + stop)
        # Together with the header, which may be a few bytes longer than in the table of contents.
        length = _HEADER_SIZE + len(member.orig_filename.encode()) + len(member.extra) + _SLACK
        found = self._file.read_at(place, place + length + (0 if start else stop))
        names, extras = _HEADER_LENGTHS.unpack_from(found, _HEADER_LENGTHS_AT)
        name = bytes(found[_HEADER_SIZE : _HEADER_SIZE + names])
        encoding = "utf-8" if member.flag_bits & _UTF8 else "cp437"
        if bytes(found[: len(_HEADER)]) != _HEADER or name.decode(encoding) != member.orig_filename:
            raise zipfile.BadZipFile(
                f"{bounds.shown(member.filename)} is not where the table of contents says"
            )
        header = _HEADER_SIZE + names + extras
        self._begins[place] = begin = place + header
        if not start and header + stop <= len(found):
            return found[header : header + stop]
        return self._file.read_at(begin + start, begin + stop)


def member_names(path: str) -> list[str]:
    """The names of the members of a file; none if it is no zip file that can be served."""
    try:
        with open(path, "rb") as file:
            return [member.filename for member in _members(file)]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, BadReply):
        return []


def _members(file: Any) -> list[zipfile.ZipInfo]:
    """The table of contents of a zip file, if it is within bounds. Raises as `ZipMembers`."""
    watched = WatchedFile(file, largest=bounds.LARGEST_CONTENTS // 8, look=_check_directory)
    with zipfile.ZipFile(watched) as archive:
        return archive.infolist()


class _Compressed:
    """The bytes of a member, in order, as they are stored."""

    def __init__(
        self, read: Callable[[zipfile.ZipInfo, int, int], memoryview], member: zipfile.ZipInfo
    ) -> None:
        self._read, self._member, self._at = read, member, 0

    def read(self, size: int) -> bytes:
        data = bytes(self._read(self._member, self._at, self._at + size))
        self._at += len(data)
        return data


def _check_directory(data: bytes) -> None:
    """Raises OutOfBoundsError for a table of contents that takes too much memory once parsed."""
    if not data.startswith(_DIRECTORY_ENTRY):
        return
    taken = at = 0
    while at + _ENTRY_SIZE <= len(data):
        length = sum(_LENGTHS.unpack_from(data, at + _LENGTHS_AT))
        taken += bounds.member_size(length)
        bounds.check_contents(taken)
        at += _ENTRY_SIZE + length


def _check_overlaps(members: list[zipfile.ZipInfo]) -> None:
    """Raises OutOfBoundsError if members share bytes, with which a small file can seem huge."""
    end, last = 0, -1
    for member in sorted(members, key=lambda member: member.header_offset):
        # Several names of one member do not count several times.
        if member.header_offset != last and member.header_offset < end:
            raise bounds.OutOfBoundsError(f"{bounds.shown(member.filename)}: overlaps another")
        last = member.header_offset
        end = max(end, member.header_offset + member.compress_size)
