"""The directories of a local store's objects, made where they are missing."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from typing import Self

from zarrfs.errors import StoreError, StoreTimeout
from zarrfs.store.local.beneath import DIRECTORY
from zarrfs.store.local.local_errors import not_applicable
from zarrfs.store.local.local_root import LocalRoot


class LocalDirectories:
    """Opens directories below ``root``, and makes them durably; thread-safe.

    Shared state: ``_making`` is true, under ``_lock``, from before a directory appears
    until it is durable. Who finds a directory waits for that, lest the object that it
    puts there is durable and the way to it is not.
    """

    def __init__(self, root: LocalRoot) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._making = False

    def open(self, key: str, path: bytes) -> int | None:
        """A file descriptor of its own; None where there is no such directory."""
        return self._root.open(key, path or b".", DIRECTORY)

    def open_or_make(self, key: str, path: bytes) -> int:
        """As `open`. Raises `StoreError` where a file is in the way, and `OSError`:
        `FileNotFoundError` where somebody deletes what was made.
        """
        fd = self.open(key, path)
        if fd is not None:
            if self._making:
                with self._lock:
                    pass
            return fd
        with self._lock:
            self._making = True
            try:
                return self._make(key, path)
            finally:
                self._making = False

    def _make(self, key: str, path: bytes) -> int:
        parent, done = self.open(key, b""), b""
        if parent is None:
            raise FileNotFoundError(path)
        try:
            for name in path.split(b"/"):
                done = done + b"/" + name if done else name
                child = self.open(key, done)
                if child is None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=parent)
                    sync_directory(parent)
                    # By its path from the root again: were it a link by now, that is
                    # judged like any other.
                    child = self.open(key, done)
                    if child is None:
                        # Deleted at once, or there is something else.
                        os.lstat(name, dir_fd=parent)
                        raise StoreError(key, f"{os.fsdecode(done)} is no directory")
                os.close(parent)
                parent = child
        except BaseException:
            os.close(parent)
            raise
        return parent


@dataclass(slots=True, eq=False, repr=False)
class OpenDirectory:
    """A directory that several changes are made in.

    path : from the root.
    changed : whether there are changes that are not durable.
    failure : why they could not be made durable. The kernel tells that once only.
    busy : why it could not be locked. Others need not wait as long for the same.
    """

    path: bytes
    fd: int
    changed: bool = False
    failure: OSError | None = None
    busy: StoreTimeout | None = None

    def sync(self) -> None:
        """Makes all changes durable, unless that is done; raises `OSError`."""
        if self.failure is not None:
            raise self.failure
        if self.changed:
            try:
                sync_directory(self.fd)
            except OSError as error:
                self.failure = error
                raise
            self.changed = False


class OpenDirectories:
    """Directories that one thread changes, each open once. Ends as a context."""

    def __init__(self, directories: LocalDirectories) -> None:
        self._directories = directories
        self._open: dict[bytes, OpenDirectory] = {}
        self._fds: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)

    def open_or_make(self, key: str, path: bytes) -> OpenDirectory:
        """See `LocalDirectories.open_or_make`."""
        if (found := self._open.get(path)) is None:
            fd = self._directories.open_or_make(key, path)
            self._fds.append(fd)
            found = self._open[path] = OpenDirectory(path, fd)
        return found

    def forget(self, path: bytes) -> None:
        """There may be another directory of that path now."""
        self._open.pop(path, None)


def sync_directory(fd: int) -> None:
    """Makes the names in a directory durable; raises `OSError`."""
    try:
        os.fsync(fd)
    except OSError as error:
        # Some network and FUSE file systems cannot, and store names at once.
        if not not_applicable(error):
            raise
