"""Members of a tar file, compressed or not.

https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html
"""

from __future__ import annotations

import tarfile
from typing import Any, NamedTuple

from zarrfs.store.remote.archives.container import RangedFile, SharedFile, WatchedFile
from zarrfs.store.remote.archives.contents import Members
from zarrfs.store.remote.archives.damage import lasting
from zarrfs.store.remote.requests import BadReply

_LARGEST_HEADER = 1 << 20  # bytes of a long name or of an extended header


class _Member(NamedTuple):
    """The place of a file's bytes in the archive.

    refused : why zarrfs does not serve them.
    """

    start: int
    size: int
    refused: str | None = None


class TarMembers(Members[_Member]):
    """Reads members by path.

    file : open for reading, not compressed any more; closed with this object.
    furthest : most bytes that it may have; None: any number.

    Raises `tarfile.TarError` and OutOfBoundsError.
    """

    def __init__(self, file: RangedFile | SharedFile, furthest: int | None) -> None:
        super().__init__(file)
        watched = WatchedFile(file, largest=_LARGEST_HEADER, furthest=furthest)
        with tarfile.TarFile(fileobj=watched) as archive:  # type: ignore[arg-type]
            offset = -1
            while (found := archive.next()) is not None:
                # A negative size would lead back to an earlier header.
                if found.offset <= offset:
                    raise BadReply("the archive has a member of negative size")
                offset = found.offset
                self._add_member(found)
                # tarfile would keep them all.
                archive.members.clear()  # type: ignore[attr-defined]

    def _add_member(self, found: tarfile.TarInfo) -> None:
        if found.isdir():
            self.add(found.name, None)
        elif found.issparse():
            member = _Member(0, 0, "is a sparse file of a tar file, which is not served")
            self.add(found.name, member)
        elif found.isreg():
            self.add(found.name, _Member(found.offset_data, found.size))
        elif found.islnk() and (target := self._linked(found.linkname)) is not None:
            # A hard link names an earlier file.
            self.add(found.name, target)
        elif found.islnk() or found.issym():
            member = _Member(0, 0, "is a link of a tar file, which is not followed")
            self.add(found.name, member)

    def _linked(self, name: str) -> _Member | None:
        try:
            return super().find("/".join(p for p in name.split("/") if p not in ("", ".")))
        except FileNotFoundError:
            return None

    def find(self, path: str) -> _Member | None:
        """Raises BadReply for a member that is not served."""
        member = super().find(path)
        if member is not None and member.refused is not None:
            raise BadReply(member.refused)
        return member

    def describe(self, file: _Member) -> dict[str, Any]:
        return {"size": file.size, "uid": file.start}

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        if (member := self.find(path.strip("/"))) is None:
            raise IsADirectoryError(path)
        with lasting():
            return bytes(
                self._file.read_at(member.start + start, member.start + min(end, member.size))
            )
