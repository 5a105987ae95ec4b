"""The directories of a local store's objects, made if they are missing."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass

from zarrfs.errors import StoreError, StoreTimeout
from zarrfs.store.local.beneath import DIRECTORY
from zarrfs.store.local.local_errors import not_applicable
from zarrfs.store.local.local_root import LocalRoot


class LocalDirectories:
    """Opens directories below ``root``, and makes missing ones durably. Thread-safe.

    Shared state: ``_making`` is true, under ``_lock``, from before a directory appears until it is
    durable. A thread that finds a directory waits for that. Otherwise an object could be durable
    while the directory above it is not.
    """

    def __init__(self, root: LocalRoot) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._making = False

    def open(self, key: str, path: bytes) -> int | None:
        """A new file descriptor; None if there is no such directory."""
        return self._root.open(key, path or b".", DIRECTORY)

    def open_or_make(self, key: str, path: bytes) -> int:
        """As `open`. Raises `StoreError` if a file is in the way.

        Raises `OSError` too: `FileNotFoundError` if another process deletes the new directory.
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
                    # Opened by its path from the root: if it is a link by now, the link is checked
                    # like any other.
                    child = self.open(key, done)
                    if child is None:
                        # Another process deleted it at once, or put something else there.
                        os.lstat(name, dir_fd=parent)
                        raise StoreError(key, f"{os.fsdecode(done)} is not a directory")
                os.close(parent)
                parent = child
        except BaseException:
            os.close(parent)
            raise
        return parent


@dataclass(slots=True, eq=False, repr=False)
class OpenDirectory:
    """A directory in which one thread makes several changes.

    path : from the root.
    changed : whether there are changes that are not durable.
    failure : why they could not be made durable; kept because the kernel reports it only once.
    busy : why it could not be locked; kept so that later changes need not wait as long.
    """

    path: bytes
    fd: int
    changed: bool = False
    failure: OSError | None = None
    busy: StoreTimeout | None = None

    def sync(self) -> None:
        """Make all changes durable if there are any that are not; raises `OSError`."""
        if self.failure is not None:
            raise self.failure
        if self.changed:
            try:
                sync_directory(self.fd)
            except OSError as error:
                self.failure = error
                raise
            self.changed = False


class OpenDirectories(contextlib.ExitStack):
    """The directories that one thread changes, each open once. Closed at the end of the context."""

    def __init__(self, directories: LocalDirectories) -> None:
        super().__init__()
        self._directories = directories
        self._open: dict[bytes, OpenDirectory] = {}

    def open_or_make(self, key: str, path: bytes) -> OpenDirectory:
        """See `LocalDirectories.open_or_make`."""
        if (found := self._open.get(path)) is None:
            fd = self._directories.open_or_make(key, path)
            self.callback(os.close, fd)
            found = self._open[path] = OpenDirectory(path, fd)
        return found

    def forget(self, path: bytes) -> None:
        """Drop the open directory of this path, because another one may have replaced it."""
        self._open.pop(path, None)


def sync_directory(fd: int) -> None:
    """Make the names in a directory durable; raises `OSError`."""
    try:
        os.fsync(fd)
    except OSError as error:
        # Some network and FUSE file systems do not support it, and store names at once.
        if not not_applicable(error):
            raise
