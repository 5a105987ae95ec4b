"""Parts of stored objects as files of a directory, shared by all processes that use it.

The name of a file contains a digest of its object, a digest of the object's state, and the part
that the file holds. A file begins with a checksum of the rest. It is made by a rename, so a killed
process leaves at most a temporary file. A file that a crash of the machine has torn fails its
checksum. The least recently used files are removed first. Errors of the disk count as misses.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import stat
import struct
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c
import numpy as np

from zarrfs.errors import UsageError
from zarrfs.store.base import Data, Generation, ObjectInfo
from zarrfs.store.ranges import Span

_NAME = "zarrfs-cache-1"
_TEMPORARY = "tmp-"
_HEAD = struct.Struct("<6sxxII")
_MAGIC = b"zarrfs"
# Seconds in which a file's time of use is updated at most once.
_USE_S = 60.0
# Seconds after which a temporary file counts as left behind by a killed process.
_ABANDONED_S = 3600.0
# Part of the limit to which the size is reduced once files have to be removed.
_KEPT = 0.9
# A process examines all files after it has written this part of the limit.
_LOOK = 0.05
# Seconds without writes after an error of the disk.
_REST_S = 30.0


class Part(NamedTuple):
    """The bytes ``data`` from ``start`` on, of the object that ``info`` describes."""

    info: ObjectInfo
    start: int
    data: memoryview


class CacheFiles:
    """Safe for any number of threads and processes.

    directory : made if it is missing; the files of zarrfs in it are private to this user.
    size : most bytes that all files may take together. Each process that uses the directory at
        the same time may exceed it by a twentieth.

    Raises UsageError for a directory that cannot be used.
    """

    def __init__(self, directory: str, size: int) -> None:
        self._size = size
        self._root = os.path.join(os.path.abspath(directory), _NAME)
        self._lock = threading.Lock()
        self._unseen = size  # so that the first write examines the files
        self._rest_until = 0.0
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._root, 0o700)
            found = os.lstat(self._root)
        except OSError as error:
            raise UsageError(f"{directory}: cannot be a disk cache: {error.strerror}") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o77:
            raise UsageError(f"{self._root}: is not a directory of this user alone")

    def read(self, name: str, span: Span, generation: Generation | None) -> Part | None:
        """The kept part of an object that contains all of ``span``; any part for an empty span.

        name : of the object.
        generation : the state that the part must have; None: any.
        """
        for state, part, path in self._files(name):
            if generation is not None and state != _digest(repr(generation)):
                continue
            if span.start == span.stop or (part.start <= span.start and span.stop <= part.stop):
                found = self._load(path)
                if found is not None:
                    return found
        return None

    def holds(self, name: str) -> bool:
        """Whether any part of an object is kept."""
        return next(self._files(name), None) is not None

    def keep(self, name: str, info: ObjectInfo, start: int, data: Data) -> None:
        """Keep a part of an object, and drop the parts of its older states."""
        count = memoryview(data).nbytes
        if count > self._size * _LOOK or time.monotonic() < self._rest_until:
            return
        state = _digest(repr(info.generation))
        head = json.dumps([info.size, info.mtime_ns, list(info.generation)]).encode()
        place = self._place(name)
        path = os.path.join(place, f"{state}.{start}.{count}")
        temporary = os.path.join(self._root, f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            for other, part, old in self._files(name):
                if other != state or Span(start, start + count) == part:
                    os.unlink(old)
            for made in (os.path.dirname(place), place):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(made, 0o700)
            try:
                opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(opened, "wb") as file:
                    check = _checksum(head, data)
                    file.writelines([_HEAD.pack(_MAGIC, check, len(head)), head, data])
                os.rename(temporary, path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError:
            self._rest_until = time.monotonic() + _REST_S
            return
        with self._lock:
            self._unseen += count
            look = self._unseen >= self._size * _LOOK
            if look:
                self._unseen = 0
        if look:
            self._make_room()

    def _make_room(self) -> None:
        """Examine all files, and remove the least recently used ones if their sum is too large."""
        path = os.path.join(self._root, "lock")
        with (
            contextlib.suppress(OSError),
            open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as lock,
        ):
            # If several processes find the cache too large, one of them suffices.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            files = sorted(self._all())
            total = sum(count for _, count, _ in files)
            if total <= self._size:
                return
            for _, count, path in files:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.dirname(path))
                total -= count
                if total <= self._size * _KEPT:
                    return

    def _all(self) -> Iterator[tuple[float, int, str]]:
        """For each file its time of last use, its bytes, and its path."""
        for directory, _, names in os.walk(self._root):
            for name in names:
                path = os.path.join(directory, name)
                with contextlib.suppress(OSError):
                    found = os.stat(path)
                    if not name.startswith(_TEMPORARY) and name != "lock":
                        yield found.st_mtime, found.st_blocks * 512, path
                    elif name != "lock" and time.time() - found.st_mtime > _ABANDONED_S:
                        os.unlink(path)

    def _files(self, name: str) -> Iterator[tuple[str, Span, str]]:
        """For each file of an object its state, part and path."""
        place = self._place(name)
        try:
            names = os.listdir(place)
        except OSError:
            return
        for file in names:
            state, _, part = file.partition(".")
            start, _, count = part.partition(".")
            if start.isdigit() and count.isdigit():
                yield state, Span(int(start), int(start) + int(count)), os.path.join(place, file)

    def _place(self, name: str) -> str:
        digest = _digest(name)
        return os.path.join(self._root, digest[:2], digest[2:])

    def _load(self, path: str) -> Part | None:
        """The content of a file; a damaged file is removed."""
        try:
            with open(path, "rb") as file:
                content = memoryview(file.read())
                if time.time() - os.fstat(file.fileno()).st_mtime > _USE_S:
                    os.utime(file.fileno())
        except OSError:
            return None
        part = _parse(content, int(path.rpartition("/")[2].split(".")[1]))
        if part is None:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return part


def _parse(content: memoryview, start: int) -> Part | None:
    if len(content) < _HEAD.size:
        return None
    magic, check, length = _HEAD.unpack(content[: _HEAD.size])
    head, data = content[_HEAD.size : _HEAD.size + length], content[_HEAD.size + length :]
    if magic != _MAGIC or _checksum(head, data) != check:
        return None
    size, mtime_ns, generation = json.loads(bytes(head))
    return Part(ObjectInfo(size, mtime_ns, tuple(generation)), start, data)


def _checksum(head: Data, data: Data) -> int:
    check = google_crc32c.value(bytes(head))
    return int(google_crc32c.extend(check, np.frombuffer(data, np.uint8)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]
