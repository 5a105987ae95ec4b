"""Temporary files of writers, such that those of a killed one are told from the others.

They lie in one directory at the store's root, so that finding what was left behind
does not take a walk through the store. Each user has one of their own, which nobody
else may look into. It is made for the first writer and goes with the last.

Every writer holds a lock (``flock``) on a file of its own there, which the kernel
releases however the writer ends. A file of whoever's lock can be taken is a leftover.

The store may be somebody else's. Only a directory that belongs to this user is used, and made
private first; in it only regular files of this user are looked at, and no link is followed.

Where a file cannot be renamed from there to its place, for another file system is
mounted or linked there, the temporary file lies beside its place, and a note in the
directory at the root tells where.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import secrets
import stat
import threading
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.errors import StoreError
from zarrfs.store.local.beneath import DIRECTORY
from zarrfs.store.local.local_root import LocalRoot

RESERVED = ".zarrfs-tmp-"
"""Begins the names of our directories and of the files that lie beside their place."""

_PREFIX = RESERVED.encode()
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_DIRECTORY_MODE = 0o700
_OTHERS = 0o077
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_LONGEST_NOTE = 1 << 13  # more than the longest path
_FILE_MODE = 0o666  # less the umask, as of any new file
_RACES = 16
_NAME = rb"([0-9a-f]{16})\.(lock|[0-9]+|[0-9]+\.beside)"
_LOCK = b".lock"
_NOTE = b".beside"


def is_reserved(path: bytes) -> bool:
    """Whether a path of the store names something of ours."""
    return _PREFIX in path and any(part.startswith(_PREFIX) for part in path.split(b"/"))


@dataclass(slots=True, eq=False, repr=False)
class Temporary:
    """A new, empty file, open for writing. Ends with `discard`, whether renamed or not.

    note : the file in the scratch directory that tells of this one, where it lies elsewhere.
    """

    fd: int
    directory_fd: int
    name: bytes
    note: Temporary | None = None
    renamed: bool = False

    def rename(self, name: bytes, directory_fd: int) -> None:
        """To its place; raises `OSError`."""
        os.rename(self.name, name, src_dir_fd=self.directory_fd, dst_dir_fd=directory_fd)
        self.renamed = True

    def discard(self) -> None:
        """Closes the file and removes what is not in its place."""
        os.close(self.fd)
        if not self.renamed:
            with contextlib.suppress(OSError):
                os.unlink(self.name, dir_fd=self.directory_fd)
        if self.note is not None:
            self.note.discard()


class _Registered(NamedTuple):
    """A writer's scratch directory, its name there, and the lock that shows it is alive."""

    directory_fd: int
    device: int
    token: bytes
    lock_fd: int


class Scratch:
    """Makes temporary files; thread-safe, but for `close`.

    Shared state: ``_registered``, replaced under ``_lock``. What was replaced stays
    open until `close`, for other threads may hold its number.
    """

    def __init__(self, root: LocalRoot) -> None:
        self._root = root
        self._name = _PREFIX + b"%d" % os.geteuid()
        self._lock = threading.Lock()
        self._counter = itertools.count()
        self._registered: _Registered | None = None
        self._retired: list[_Registered] = []

    def create(self, key: str, device: int) -> Temporary | None:
        """A file in the scratch directory; None where that is not on ``device``.

        Raises `OSError`, and `StoreError` where there can be no scratch directory.
        """
        registered = self._registered or self._register(key, None)
        if registered.device != device:
            return None
        return self._create(key, registered, b"")

    def create_beside(self, key: str, directory: bytes, directory_fd: int) -> Temporary:
        """A file in the ``directory`` of the store, which is open as ``directory_fd``.

        Raises as `create`.
        """
        registered = self._registered or self._register(key, None)
        note = self._create(key, registered, _NOTE)
        try:
            name = _PREFIX + note.name.removesuffix(_NOTE)
            os.write(note.fd, directory + b"/" + name)
            fd = os.open(name, _CREATE, _FILE_MODE, dir_fd=directory_fd)
        except BaseException:
            note.discard()
            raise
        return Temporary(fd, directory_fd, name, note)

    def leftovers(self, *, remove: bool) -> list[str]:
        """See `Store.leftovers`."""
        directory_fd = self._open_own()
        if directory_fd is None:
            return []
        found = []
        try:
            with os.scandir(directory_fd) as entries:
                names = [os.fsencode(entry.name) for entry in entries if _is_own_file(entry)]
            # Whoever locked their file did so before they made another, so a writer
            # that this listing shows is found by its lock even if that came later.
            for token in {match[1] for name in names if (match := re.fullmatch(_NAME, name))}:
                files = [name for name in names if name.startswith(token + b".")]
                found += self._if_dead(directory_fd, token, files, remove=remove)
            if remove:
                self._remove_directory()
        except OSError as error:
            raise self._root.failure(self._shown_name, error) from error
        finally:
            os.close(directory_fd)
        return sorted(os.fsdecode(path) for path in found)

    def close(self) -> None:
        """Removes the lock, and the directory with the last writer. Idempotent."""
        registered, self._registered = self._registered, None
        if registered is not None:
            with contextlib.suppress(OSError):
                os.unlink(registered.token + _LOCK, dir_fd=registered.directory_fd)
            self._retired.append(registered)
            with contextlib.suppress(OSError, StoreError):
                self._remove_directory()
        for old in self._retired:
            os.close(old.lock_fd)
            os.close(old.directory_fd)
        self._retired.clear()

    def _open_own(self) -> int | None:
        """The scratch directory; None where there is none that is this user's own."""
        root_fd = self._root.open("", b".", DIRECTORY)
        if root_fd is None:
            return None
        try:
            fd = os.open(self._name, DIRECTORY | os.O_NOFOLLOW, dir_fd=root_fd)
        except OSError:
            return None
        finally:
            os.close(root_fd)
        if os.fstat(fd).st_uid == os.geteuid():
            return fd
        os.close(fd)
        return None

    def _create(self, key: str, registered: _Registered, suffix: bytes) -> Temporary:
        for _ in range(_RACES):
            name = registered.token + b".%d" % next(self._counter) + suffix
            try:
                fd = os.open(name, _CREATE, _FILE_MODE, dir_fd=registered.directory_fd)
            except FileNotFoundError:
                # Somebody deleted the directory, or the whole store.
                registered = self._register(key, registered)
            else:
                return Temporary(fd, registered.directory_fd, name)
        raise StoreError(key, f"{self._shown_name} is deleted again and again")

    def _register(self, key: str, gone: _Registered | None) -> _Registered:
        with self._lock:
            if self._registered is not None and self._registered is not gone:
                return self._registered
            if gone is not None:
                self._retired.append(gone)
                self._registered = None
            for _ in range(_RACES):
                if (registered := self._registration(key)) is not None:
                    self._registered = registered
                    return registered
        raise StoreError(key, f"{self._shown_name} cannot be made")

    def _registration(self, key: str) -> _Registered | None:
        """A new one; None where another process removed the directory meanwhile."""
        root_fd = self._root.open(key, b".", DIRECTORY)
        if root_fd is None:
            raise StoreError(key, f"the store {self._root.path} was deleted")
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._name, _DIRECTORY_MODE, dir_fd=root_fd)
            try:
                directory_fd = os.open(self._name, DIRECTORY | os.O_NOFOLLOW, dir_fd=root_fd)
            except FileNotFoundError:
                return None
            except NotADirectoryError as error:
                raise StoreError(key, f"{self._shown_name} is in the way; remove it") from error
        finally:
            os.close(root_fd)
        try:
            self._make_private(key, directory_fd)
        except BaseException:
            os.close(directory_fd)
            raise
        token = secrets.token_hex(8).encode()
        lock_fd = -1
        try:
            lock_fd = os.open(token + _LOCK, _CREATE, 0o600, dir_fd=directory_fd)
            if _locked(lock_fd) is not False and os.fstat(lock_fd).st_nlink:
                return _Registered(directory_fd, os.fstat(directory_fd).st_dev, token, lock_fd)
            # It was taken for a leftover between these two steps.
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(directory_fd)
            raise
        if lock_fd >= 0:
            os.close(lock_fd)
        os.close(directory_fd)
        return None

    @property
    def _shown_name(self) -> str:
        return os.fsdecode(self._name)

    def _make_private(self, key: str, directory_fd: int) -> None:
        """Raises StoreError for a directory of another user: what lies there is his to change."""
        status = os.fstat(directory_fd)
        if status.st_uid != os.geteuid():
            raise StoreError(key, f"{self._shown_name} belongs to another user; remove it")
        if status.st_mode & _OTHERS:
            # File systems that have no modes refuse, or do nothing.
            with contextlib.suppress(OSError):
                os.fchmod(directory_fd, _DIRECTORY_MODE)

    def _if_dead(
        self, directory_fd: int, token: bytes, names: list[bytes], *, remove: bool
    ) -> list[bytes]:
        """Finds or removes the files of the writer, its lock last; returns their paths."""
        lock_fd = -1
        if token + _LOCK in names:
            with contextlib.suppress(FileNotFoundError):
                lock_fd = os.open(token + _LOCK, os.O_RDWR | _OPEN, dir_fd=directory_fd)
        found = []
        try:
            if lock_fd >= 0 and not _locked(lock_fd):
                return []
            for name in sorted(names, key=lambda name: name.endswith(_LOCK)):
                if name.endswith(_NOTE):
                    found += self._noted(directory_fd, name, remove=remove)
                with contextlib.suppress(FileNotFoundError):
                    if remove:
                        os.unlink(name, dir_fd=directory_fd)
                    if not name.endswith((_LOCK, _NOTE)):
                        found.append(self._name + b"/" + name)
        finally:
            if lock_fd >= 0:
                os.close(lock_fd)
        return found

    def _noted(self, directory_fd: int, note: bytes, *, remove: bool) -> list[bytes]:
        """Finds or removes the file that a note tells of, if it still is there."""
        try:
            fd = os.open(note, os.O_RDONLY | _OPEN, dir_fd=directory_fd)
        except FileNotFoundError:
            return []
        with open(fd, "rb") as file:
            path = file.read(_LONGEST_NOTE)
        parent, _, name = path.rpartition(b"/")
        if name != _PREFIX + note.removesuffix(_NOTE) or b"\0" in path:
            return []  # killed while it wrote the note, before there was a file
        parent_fd = self._root.open("", parent or b".", DIRECTORY)
        if parent_fd is None:
            return []
        try:
            if remove:
                os.unlink(name, dir_fd=parent_fd)
            else:
                os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
        except FileNotFoundError:
            return []
        finally:
            os.close(parent_fd)
        return [path.removeprefix(b"./")]

    def _remove_directory(self) -> None:
        """Removes the scratch directory unless somebody uses it."""
        root_fd = self._root.open("", b".", DIRECTORY)
        if root_fd is not None:
            try:
                with contextlib.suppress(OSError):
                    os.rmdir(self._name, dir_fd=root_fd)
            finally:
                os.close(root_fd)


def _is_own_file(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _locked(fd: int) -> bool | None:
    """Whether the file could be locked; None where this file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
