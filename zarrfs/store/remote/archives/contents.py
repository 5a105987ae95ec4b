"""The members of an archive as a tree, within a memory limit."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from zarrfs import bounds
from zarrfs.store.remote.archives.container import RangedFile, SharedFile

_T = TypeVar("_T")


class Members(Generic[_T]):
    """Files by path, and the names in each directory, as a file system of fsspec has them.

    A name that leads out of the archive, or to its root, is left out. If several files have one
    name, the last one counts, as in any reader of archives.

    file : holds the archive; closed with this object.
    """

    async_impl = False

    def __init__(self, file: RangedFile | SharedFile) -> None:
        self._file = file
        self._files: dict[str, _T] = {}
        self._directories: dict[str, dict[str, None]] = {"": {}}
        self._taken = 0

    def add(self, name: str, file: _T | None) -> None:
        """Add a file, or a directory if ``file`` is None. Raises OutOfBoundsError."""
        bounds.check_member_name(name)
        self._charge(len(name))
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if not parts or name.startswith("/") or ".." in parts:
            return
        path = "/".join(parts)
        if file is None:
            self._make(path)
        elif path not in self._directories:
            self._make(path.rpartition("/")[0])[parts[-1]] = None
            self._files[path] = file

    def find(self, path: str) -> _T | None:
        """The file at ``path``; None for a directory.

        Raises FileNotFoundError if there is neither.
        """
        if (found := self._files.get(path)) is None and path not in self._directories:
            raise FileNotFoundError(path)
        return found

    def describe(self, file: _T) -> dict[str, Any]:
        """The size of a file, and what differs if it is another one."""
        raise NotImplementedError

    def info(self, path: str) -> dict[str, Any]:
        """Raises FileNotFoundError."""
        if (file := self.find(path.strip("/"))) is None:
            return {"name": path, "type": "directory", "size": 0}
        return {"name": path, "type": "file", **self.describe(file)}

    def ls(self, path: str, *, detail: bool = True) -> list[dict[str, Any]]:
        """By name. Raises FileNotFoundError."""
        parent = path.strip("/")
        if parent not in self._directories:
            raise FileNotFoundError(parent)
        paths = [f"{parent}/{name}".lstrip("/") for name in sorted(self._directories[parent])]
        return [
            {"name": each, "type": "directory" if each in self._directories else "file"}
            for each in paths
        ]

    def close(self) -> None:
        self._file.close()

    def _make(self, path: str) -> dict[str, None]:
        """The names in the directory; makes it and its parents if they are missing."""
        if (found := self._directories.get(path)) is not None:
            return found
        self._charge(len(path))
        parent, _, name = path.rpartition("/")
        self._make(parent)[name] = None
        # A path that is both a file and a directory counts as a directory: it has files below it.
        self._files.pop(path, None)
        return self._directories.setdefault(path, {})

    def _charge(self, length: int) -> None:
        self._taken += bounds.member_size(length)
        bounds.check_contents(self._taken)
