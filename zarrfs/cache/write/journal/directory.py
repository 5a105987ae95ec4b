"""The directory of a journal on disk: all code that touches it, by directory descriptor."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from zarrfs.errors import JournalError, StoreTimeout
from zarrfs.store.local.file_locks import locked, try_lock
from zarrfs.store.write_parts import write_parts

CONFLICTS = "conflicts"
DAMAGED = "damaged"
CHUNK = ".chunk"
GROWTH = ".growth"

_ENTRY = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}\.(chunk|growth)")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}-[0-9a-f]{16}\.(chunk|growth)\.new")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_RACES = 16


class JournalDirectory:
    """Files of entries below ``path``, which need not exist.

    Methods raise OSError and JournalError. Methods that name an entry take its file name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # --- writing ----------------------------------------------------------------

    def put(self, name: str, pieces: Callable[[], Iterable[bytes]]) -> None:
        """Write an entry with that content, in one step. It is durable only after `sync`.

        pieces : of the content; each call starts from the beginning.
        """
        temporary = f".{name}.new"
        for _ in range(_RACES):
            self._make()
            # Another mount may remove the empty directory, or may remove the temporary file as a
            # leftover before it is locked.
            with suppress(FileNotFoundError), self._open() as directory:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)
                descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=directory)
                try:
                    os.fchmod(descriptor, 0o600)
                    if try_lock(descriptor) is False or not os.fstat(descriptor).st_nlink:
                        continue
                    for piece in pieces():
                        write_parts(descriptor, [piece])
                    os.fsync(descriptor)
                    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
                except BaseException:
                    with suppress(OSError):
                        os.unlink(temporary, dir_fd=directory)
                    raise
                finally:
                    os.close(descriptor)
                return
        raise JournalError(f"{self.path} changes all the time")

    def sync(self) -> None:
        """Make the names of the entries durable."""
        with self._open() as directory:
            os.fsync(directory)

    def remove(self, name: str) -> None:
        """Remove an entry. Another mount may have removed it already."""
        with suppress(FileNotFoundError), self._open() as directory:
            os.unlink(name, dir_fd=directory)
            os.fsync(directory)

    def set_aside(self, name: str, place: str, kept: str) -> Path:
        """Move an entry to the file ``kept`` in the directory ``place`` below this one."""
        with self._open() as directory:
            _make_directory(place, directory)
            below = os.open(place, _DIRECTORY, dir_fd=directory)
            try:
                os.rename(name, kept, src_dir_fd=directory, dst_dir_fd=below)
                os.fsync(below)
            finally:
                os.close(below)
            os.fsync(directory)
        return self.path / place / kept

    def clean(self) -> None:
        """Remove files that killed writers have left, and the directory if it is empty then."""
        with suppress(FileNotFoundError):
            with self._open() as directory:
                for name in os.listdir(directory):
                    if _TEMPORARY.fullmatch(name):
                        self._clean(name, directory)
                for place in (CONFLICTS, DAMAGED):
                    with suppress(OSError):
                        os.rmdir(place, dir_fd=directory)
            with suppress(OSError):
                self.path.rmdir()

    @staticmethod
    def _clean(name: str, directory: int) -> None:
        with suppress(OSError):
            descriptor = os.open(name, _READ, dir_fd=directory)
            try:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                    return
                # A mount that writes the file has it locked.
                if try_lock(descriptor):
                    os.unlink(name, dir_fd=directory)
            finally:
                os.close(descriptor)

    # --- reading ----------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all entries, sorted."""
        try:
            with self._open() as directory:
                return sorted(filter(_ENTRY.fullmatch, os.listdir(directory)))
        except FileNotFoundError:
            return []

    @contextmanager
    def reading(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """An entry, open, and its size.

        Raises NotOurs if another user may have put the file there.
        """
        with self._open() as directory:
            try:
                descriptor = os.open(name, _READ, dir_fd=directory)
            except FileNotFoundError:
                raise
            except OSError as error:
                raise NotOurs(f"{self.path / name}: {error.strerror}") from error
            with open(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise NotOurs(f"{self.path / name} is not a regular file")
                if found.st_uid != os.geteuid():
                    raise NotOurs(f"{self.path / name} belongs to the user {found.st_uid}")
                yield file, found.st_size

    @contextmanager
    def locked(self, patience: float) -> Iterator[bool]:
        """Keep other mounts from a replay; False if another replay takes ``patience`` seconds."""
        with ExitStack() as stack:
            alone = True
            try:
                directory = stack.enter_context(self._open())
                stack.enter_context(locked(directory, str(self.path), patience))
            except StoreTimeout:
                alone = False
            except (OSError, NotOurs):
                pass  # the code that reads the directory reports that it cannot be opened
            yield alone

    @contextmanager
    def _open(self) -> Iterator[int]:
        directory = os.open(self.path, _DIRECTORY)
        try:
            owner = os.fstat(directory).st_uid
            if owner != os.geteuid():
                raise NotOurs(f"{self.path} belongs to the user {owner}")
            yield directory
        finally:
            os.close(directory)

    def _make(self) -> None:
        for directory in reversed((self.path, *self.path.parents)):
            if directory.exists():
                continue
            above = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _make_directory(directory.name, above)
            finally:
                os.close(above)


class NotOurs(JournalError):
    """A file or directory that belongs to another user, or is no regular entry."""


def _make_directory(name: str, above: int) -> None:
    """Make a directory that no other user may look into; it may exist. Durable."""
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        return
    # The umask may have removed permission bits, even those that opening the directory needs.
    try:
        made = os.open(name, _DIRECTORY, dir_fd=above)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=above)
        made = os.open(name, _DIRECTORY, dir_fd=above)
    try:
        os.fchmod(made, 0o700)
    finally:
        os.close(made)
    os.fsync(above)
