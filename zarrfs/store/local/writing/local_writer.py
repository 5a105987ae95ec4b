"""Putting and deleting the files of a local store.

A put writes a temporary file, syncs it, renames it to its place and syncs the directory. So a
reader, also after a power failure, finds the old file or the new one.

Many puts take these steps together: the writer writes all files before it syncs the first one. One
commit of the file system's journal then makes many of them durable, and one more commit makes their
names durable. One `syncfs` for all of them would wait for the files of other programs, too.

A key whose file is a symbolic link is replaced. The target of the link stays: it has a key of its
own.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeAlias

from zarrfs.errors import (
    StoreConflict,
    StoreError,
    StoreFull,
    StoreQuotaExceeded,
    StoreTimeout,
)
from zarrfs.store.base import ANY, Data, Expected, ObjectInfo, Put, Store
from zarrfs.store.local.file_locks import locked
from zarrfs.store.local.local_directories import LocalDirectories, OpenDirectories, OpenDirectory
from zarrfs.store.local.local_errors import crosses_devices
from zarrfs.store.local.local_root import DanglingLink, LocalRoot, encode, is_too_long, object_info
from zarrfs.store.local.scratch import Scratch, Temporary, is_reserved
from zarrfs.store.local.writing.write_out import begin_to_write_out
from zarrfs.store.write_parts import write_parts

_ATTEMPTS = 6
_LOCK_TIMEOUT_S = 30.0

_Steps: TypeAlias = Generator[None, None, ObjectInfo]
"""A put that pauses before it waits for the disk, so that other puts can reach the same step."""


class _Place(NamedTuple):
    """The file of an object: ``name`` in the ``directory``."""

    key: str
    path: bytes
    name: bytes
    directory: OpenDirectory


class LocalWriter(Store):
    """The methods of a store that write below ``root``. Thread-safe, except `close`.

    durable : whether a put waits for the disk; otherwise `sync_file_system` does, for many.

    Shared state: ``_unsynced``, the directories whose sync failed after a change. Each operation on
    it is atomic, and a superfluous entry costs one sync.
    """

    def __init__(self, root: LocalRoot, *, durable: bool = True) -> None:
        self._root = root
        self._durable = durable
        self._directories = LocalDirectories(root)
        self._scratch = Scratch(root)
        self._unsynced: set[bytes] = set()

    @property
    def read_only(self) -> str | None:
        try:
            flags = os.statvfs(self._root.fd).f_flag
        except OSError as error:
            return self._root.failure("", error).reason
        if flags & os.ST_RDONLY:
            return "its file system is mounted read-only"
        if not os.access(b".", os.W_OK | os.X_OK, dir_fd=self._root.fd, effective_ids=True):
            return "no permission to make files in its directory"
        return None

    def put(self, key: str, parts: Sequence[Data], *, expected: Expected) -> ObjectInfo:
        (result,) = self.put_many([Put(key, parts, expected)])
        if isinstance(result, StoreError):
            raise result
        return result

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        results: dict[int, ObjectInfo | StoreError] = {}
        with OpenDirectories(self._directories) as directories:
            under_way = {i: self._put(put, directories) for i, put in enumerate(puts)}
            try:
                while under_way:
                    for i, steps in list(under_way.items()):
                        try:
                            next(steps)
                            continue
                        except StopIteration as end:
                            results[i] = end.value
                        except StoreError as error:
                            # Without its frames, which would keep all data that are to be stored.
                            results[i] = error.without_frames()
                        del under_way[i]
            finally:
                for steps in under_way.values():
                    steps.close()
        for i, result in results.items():
            if isinstance(result, (StoreFull, StoreQuotaExceeded)) and len(puts) > 1:
                # Until now each replaced object took its space twice; now there may be room.
                try:
                    results[i] = self.put(puts[i].key, puts[i].parts, expected=puts[i].expected)
                except StoreError as error:
                    results[i] = error.without_frames()
        return [results[i] for i in range(len(puts))]

    def delete(self, key: str, *, expected: Expected) -> None:
        path = _writable(key)
        parent, _, name = path.rpartition(b"/")
        fd = None if is_too_long(path) else self._directories.open(key, parent)
        if fd is None:
            return
        directory = OpenDirectory(parent, fd)
        place = _Place(key, path, name, directory)
        try:
            with locked(fd, key, _LOCK_TIMEOUT_S):
                try:
                    found, _ = self._look(place)
                    there = found is not None
                except DanglingLink:
                    if expected is not ANY:
                        raise
                    found, there = None, True  # the link is all that there is
                if there:
                    _check(key, found, expected)
                    os.unlink(name, dir_fd=fd)
            if there or parent in self._unsynced:
                directory.changed = True
                self._sync(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._root.failure(key, error) from error
        finally:
            os.close(fd)

    def leftovers(self, *, remove: bool) -> list[str]:
        return self._scratch.leftovers(remove=remove)

    def close(self) -> None:
        self._scratch.close()
        self._root.close()

    def _put(self, put: Put, directories: OpenDirectories) -> _Steps:
        """The steps of one put; they raise `StoreError`."""
        key = put.key
        path = _writable(key)
        if is_too_long(path):
            raise StoreError(key, "is too long for a file name")
        parent, _, name = path.rpartition(b"/")
        try:
            for _ in range(_ATTEMPTS):
                try:
                    place = _Place(key, path, name, directories.open_or_make(key, parent))
                    return (yield from self._replace(place, put.parts, put.expected))
                except FileNotFoundError:
                    # Deleted meanwhile: this directory, that of temporary files, or the store.
                    directories.forget(parent)
                    self._root.reopen_if_deleted(key)
        except OSError as error:
            raise self._root.failure(key, error) from error
        raise StoreError(key, "its directory is deleted again and again")

    def _replace(self, place: _Place, parts: Sequence[Data], expected: Expected) -> _Steps:
        """The steps of a put after the directory is open; they raise `OSError` too."""
        found, old = self._look(place)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise StoreError(place.key, "is a directory")
        # Only to fail before anything is written; the check under the lock decides.
        _check(place.key, found, expected)
        status = os.fstat(place.directory.fd)
        temporary = self._scratch.create(place.key, status.st_dev)
        if temporary is not None:
            try:
                self._fill(temporary, parts, old, status)
                return (yield from self._move(temporary, place, expected))
            except OSError as error:
                if not crosses_devices(error):
                    raise
                # One device may be divided by bind mounts and project quotas.
            finally:
                temporary.discard()
        directory = place.directory
        temporary = self._scratch.create_beside(place.key, directory.path or b".", directory.fd)
        try:
            self._fill(temporary, parts, old, status)
            return (yield from self._move(temporary, place, expected))
        finally:
            temporary.discard()

    def _fill(
        self,
        temporary: Temporary,
        parts: Sequence[Data],
        old: os.stat_result | None,
        directory: os.stat_result,
    ) -> None:
        take_over(temporary.fd, old, directory)
        write_parts(temporary.fd, parts)
        # The kernel's clock moves in steps of milliseconds. If an inode number were reused within
        # one step, two objects would have the same generation.
        now = time.time_ns()
        os.utime(temporary.fd, ns=(now, now))

    def _move(self, temporary: Temporary, place: _Place, expected: Expected) -> _Steps:
        """Rename the temporary file to its place, durably."""
        begin_to_write_out(temporary.fd)
        if self._durable:
            yield
            os.fsync(temporary.fd)
            yield
        directory = place.directory
        if directory.busy is not None:
            raise StoreTimeout(place.key, directory.busy.reason)
        try:
            info = self._rename(temporary, place, expected)
        except StoreTimeout as error:
            directory.busy = error
            raise
        yield
        self._sync(directory)
        return info

    def _rename(self, temporary: Temporary, place: _Place, expected: Expected) -> ObjectInfo:
        directory = place.directory
        anyhow = expected is ANY
        with locked(directory.fd, place.key, _LOCK_TIMEOUT_S, shared=anyhow):
            if not anyhow:
                _check(place.key, self._look(place)[0], expected)
            # Not while this process has the replaced file open, though its blocks would then be
            # freed without the locks of directories: on ext4 with `discard`, overwrites of fifteen
            # arrays took 3 % less time so. But NFS first moves an open file out of the way, and
            # another host finds no file meanwhile.
            temporary.rename(place.name, directory.fd)
            directory.changed = True
            # After the rename, which changes the ctime and so the generation.
            info = object_info(place.key, os.fstat(temporary.fd))
        assert info is not None
        return info

    def _sync(self, directory: OpenDirectory) -> None:
        if not self._durable:
            return
        self._unsynced.add(directory.path)
        directory.sync()
        self._unsynced.discard(directory.path)

    def _look(self, place: _Place) -> tuple[ObjectInfo | None, os.stat_result | None]:
        """The object as a reader finds it, and the ``stat`` of its file if that is no link."""
        try:
            status = os.stat(place.name, dir_fd=place.directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None, None
        if stat.S_ISLNK(status.st_mode):
            return self._root.inspect(place.key, place.path), None
        return object_info(place.key, status), status


def _check(key: str, found: ObjectInfo | None, expected: Expected) -> None:
    if expected is ANY:
        return
    if (None if found is None else found.generation) != expected:
        raise StoreConflict(key, "was changed by another writer")


def _writable(key: str) -> bytes:
    path = encode(key)
    if is_reserved(path):
        raise StoreError(key, "is a name kept for temporary files")
    return path


_AS_IT_IS = -1


def take_over(fd: int, old: os.stat_result | None, directory: os.stat_result) -> None:
    """Give a new file the mode and owner of ``old``, as far as the process may.

    fd : a new file, whose mode followed the umask.
    old : the file that it will replace; None: none.
    directory : the directory that it will lie in.

    Access control lists and extended attributes of ``old`` are not copied. Raises `OSError` for
    a mode that cannot be set: otherwise more users could read or write the file.
    """
    new = os.fstat(fd)
    if old is None:
        # As if the file had been made there (see inode(7) on the set-group-ID bit).
        if directory.st_mode & stat.S_ISGID and new.st_gid != directory.st_gid:
            _chown(fd, _AS_IT_IS, directory.st_gid)
        return
    # Like any write, a replacement clears the set-user-ID bit and the similar bits.
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if new.st_uid != old.st_uid:
        _chown(fd, old.st_uid, _AS_IT_IS)
    if new.st_gid != old.st_gid and not _chown(fd, _AS_IT_IS, old.st_gid):
        # The new group must not get the permissions of the old group.
        mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    if stat.S_IMODE(new.st_mode) != mode:
        os.fchmod(fd, mode)


def _chown(fd: int, uid: int, gid: int) -> bool:
    try:
        os.fchown(fd, uid, gid)
    except OSError:
        return False
    return True
