"""The files that references may name in a document that was found, and not named by the user."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.spec import AbstractFileSystem

from zarrfs.store.remote.references.targets import LOCAL, Refused, Targets


class FoundTargets(Targets):
    """Files of this machine that ``open_file`` opens, and no other places.

    open_file : opens the file at an absolute path, for the caller to close. Raises OSError.
    """

    def __init__(self, open_file: Callable[[str], int]) -> None:
        super().__init__(frozenset(), {}, "")
        self._files = AsyncFileSystemWrapper(_Files(open_file), asynchronous=False)

    def __missing__(self, protocol: str | None) -> Any:
        name = protocol or "file"
        made = self._files if name in LOCAL else Refused(name, "that was found in a directory")
        return self.setdefault(protocol, made)


class _Files(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Does for fsspec's file system of references what it needs of its targets."""

    protocol = "file"
    cachable = False

    def __init__(self, open_file: Callable[[str], int]) -> None:
        super().__init__()
        self._open_file = open_file

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        fd = self._open_file(_path(path))
        try:
            status = os.fstat(fd)
        finally:
            os.close(fd)
        return {
            "name": path, "type": "file", "size": status.st_size,
            "mtime": status.st_mtime, "ino": status.st_ino,
        }  # fmt: skip

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        fd = self._open_file(_path(path))
        with open(fd, "rb", buffering=0) as file:
            size = os.fstat(fd).st_size
            first, last, _step = slice(start, end).indices(size)
            file.seek(first)
            return file.read(max(0, last - first))


def _path(url: str) -> str:
    return os.path.abspath(re.sub(r"^(file|local):(//)?", "", url))
