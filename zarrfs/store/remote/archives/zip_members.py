"""Members of a zip file, with the interface of an fsspec file system.

https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
"""

from __future__ import annotations

import struct
import zipfile
from copy import copy
from typing import Any

from zarrfs import bounds
from zarrfs.store.remote.archives.contents import Contents
from zarrfs.store.remote.archives.damage import lasting
from zarrfs.store.remote.archives.watched_file import WatchedFile
from zarrfs.store.remote.archives.zip_streams import bz2_stream, lzma_stream, read_between
from zarrfs.store.remote.requests import BadReply

# `zipfile` returns only as many bytes of these as are requested; of others it returns any number.
_BOUNDED_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_STREAMS = {zipfile.ZIP_BZIP2: bz2_stream, zipfile.ZIP_LZMA: lzma_stream}
_DIRECTORY_ENTRY = b"PK\1\2"
_ENTRY_SIZE = 46
_LENGTHS = struct.Struct("<3H")
_LENGTHS_AT = 28


class ZipMembers:
    """Reads members by path; `zipfile` has a lock around the file.

    file : open for reading; closed with this object.

    Raises `zipfile.BadZipFile` and OutOfBoundsError.
    """

    async_impl = False

    def __init__(self, file: Any) -> None:
        self._zip = _opened(file)
        self._file = file
        self._contents: Contents[zipfile.ZipInfo] = Contents()
        members = self._zip.infolist()
        _check_overlaps(members)
        for member in members:
            self._contents.add(member.filename, None if member.is_dir() else member)

    def info(self, path: str) -> dict[str, Any]:
        member = self._contents.find(path.strip("/"))
        if member is None:
            return {"name": path, "type": "directory", "size": 0}
        return {"name": path, "type": "file", "size": member.file_size, "CRC": member.CRC}

    def ls(self, path: str, *, detail: bool = True) -> list[dict[str, Any]]:
        parent = path.strip("/")
        return [
            {
                "name": f"{parent}/{name.rstrip('/')}".lstrip("/"),
                "type": "directory" if name.endswith("/") else "file",
            }
            for name in self._contents.names(parent)
        ]

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        member = self._contents.find(path.strip("/"))
        if member is None:
            raise IsADirectoryError(path)
        if (open_stream := _STREAMS.get(member.compress_type)) is not None:
            with lasting(), self._zip.open(_stored(member)) as file:
                return read_between(open_stream(file), start, min(end, member.file_size), member)
        if member.compress_type not in _BOUNDED_METHODS:
            raise BadReply(f"is compressed by method {member.compress_type}, which is not served")
        with lasting(), self._zip.open(member) as file:
            file.seek(start)
            return file.read(max(end - start, 0))

    def close(self) -> None:
        self._zip.close()
        self._file.close()


def member_names(path: str) -> list[str]:
    """The names of the members of a file; none if it is no zip file that can be served."""
    try:
        with open(path, "rb") as file, _opened(file) as members:
            return members.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, BadReply):
        return []


def _opened(file: Any) -> zipfile.ZipFile:
    """A zip file whose table of contents is within bounds. Raises as `ZipMembers`."""
    watched = WatchedFile(file, largest=bounds.LARGEST_CONTENTS // 8, look=_check_directory)
    opened = zipfile.ZipFile(watched)
    watched.trust()
    return opened


def _stored(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The member as one whose content are its compressed bytes."""
    raw = copy(member)
    raw.compress_type, raw.file_size = zipfile.ZIP_STORED, member.compress_size
    # The checksum is of the decompressed bytes.
    raw.CRC = None  # type: ignore[assignment]
    return raw


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
