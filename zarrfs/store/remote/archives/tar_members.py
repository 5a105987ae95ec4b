"""Members of a tar file, compressed or not, with the interface of an fsspec file system.

https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html
"""

from __future__ import annotations

import tarfile
import threading
from typing import Any, NamedTuple

from fsspec.compression import compr
from fsspec.utils import infer_compression

from zarrfs import bounds
from zarrfs.store.remote.archives.contents import Contents
from zarrfs.store.remote.archives.damage import lasting
from zarrfs.store.remote.archives.watched_file import WatchedFile
from zarrfs.store.remote.requests import BadReply

_LARGEST_HEADER = 1 << 20  # bytes of a long name or of an extended header


class _Member(NamedTuple):
    """The place of a file's bytes in the archive.

    refused : why zarrfs does not serve them.
    """

    start: int
    size: int
    refused: str | None = None


class TarMembers:
    """Reads members by path, one at a time, because all reads share the position of the file.

    file : open for reading; closed with this object.
    name : of the file; its ending says how the file is compressed.

    Raises `tarfile.TarError` and OutOfBoundsError.
    """

    async_impl = False

    def __init__(self, file: Any, name: str) -> None:
        compression = infer_compression(name)
        self._file = file if compression is None else compr[compression](file)
        furthest = None if compression is None else bounds.LARGEST_UNPACKED
        self._watched = WatchedFile(self._file, largest=_LARGEST_HEADER, furthest=furthest)
        self._lock = threading.Lock()
        self._contents: Contents[_Member] = Contents()
        with tarfile.TarFile(fileobj=self._watched) as archive:  # type: ignore[arg-type]
            offset = -1
            while (found := archive.next()) is not None:
                # A negative size would lead back to an earlier header.
                if found.offset <= offset:
                    raise BadReply("the archive has a member of negative size")
                offset = found.offset
                self._add(found)
                # tarfile would keep them all.
                archive.members.clear()  # type: ignore[attr-defined]
        self._watched.trust()

    def _add(self, found: tarfile.TarInfo) -> None:
        if found.isdir():
            self._contents.add(found.name, None)
        elif found.issparse():
            member = _Member(0, 0, "is a sparse file of a tar file, which is not served")
            self._contents.add(found.name, member)
        elif found.isreg():
            self._contents.add(found.name, _Member(found.offset_data, found.size))
        elif found.islnk() and (target := self._linked(found.linkname)) is not None:
            # A hard link names an earlier file.
            self._contents.add(found.name, target)
        elif found.islnk() or found.issym():
            member = _Member(0, 0, "is a link of a tar file, which is not followed")
            self._contents.add(found.name, member)

    def _linked(self, name: str) -> _Member | None:
        try:
            return self._contents.find("/".join(p for p in name.split("/") if p not in ("", ".")))
        except FileNotFoundError:
            return None

    def _find(self, path: str) -> _Member | None:
        member = self._contents.find(path.strip("/"))
        if member is not None and member.refused is not None:
            raise BadReply(member.refused)
        return member

    def info(self, path: str) -> dict[str, Any]:
        member = self._find(path)
        if member is None:
            return {"name": path, "type": "directory", "size": 0}
        return {"name": path, "type": "file", "size": member.size, "uid": member.start}

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
        if (member := self._find(path)) is None:
            raise IsADirectoryError(path)
        size = max(min(end, member.size) - start, 0)
        with self._lock, lasting():
            self._watched.seek(member.start + start)
            return self._watched.read(size)

    def close(self) -> None:
        with self._lock:
            self._file.close()
