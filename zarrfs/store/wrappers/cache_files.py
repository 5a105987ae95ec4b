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
import weakref
from bisect import bisect_left
from collections import OrderedDict
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
# A process examines all files before it has written this part of the limit.
_LOOK = 0.05
# Objects whose files a process remembers, and what a file takes beside its bytes.
_MOST_OBJECTS = 4096
# Parts before a span in which one is looked for that contains it.
_NEAR = 8
_BESIDE = 4096 + 256
# Seconds without writes after an error of the disk.
_REST_S = 30.0


class Part(NamedTuple):
    """The bytes ``data`` from ``start`` on, of the object that ``info`` describes."""

    info: ObjectInfo
    start: int
    data: memoryview


class _Listed:
    """The files of one object.

    changed_ns : when their directory had been changed.
    by_state : for each state of the object, the parts of it, by where they begin, and their files.
    """

    def __init__(self, changed_ns: int) -> None:
        self.changed_ns = changed_ns
        self.by_state: dict[str, list[tuple[int, int, str]]] = {}

    def add(self, file: str, state: str) -> None:
        start, _, count = file.partition(".")[2].partition(".")
        if start.isdigit() and count.isdigit():
            entry = (int(start), int(start) + int(count), file)
            parts = self.by_state.setdefault(state, [])
            at = bisect_left(parts, entry)
            if parts[at : at + 1] != [entry]:
                parts.insert(at, entry)

    def holding(self, state: str | None, span: Span) -> Iterator[str]:
        """The files of parts that contain ``span``, any for an empty one; the closest first.

        state : of the object; None: any.
        """
        states = list(self.by_state) if state is None else [state]
        for parts in [self.by_state.get(one, ()) for one in states]:
            at = bisect_left(parts, (span.start + 1,))
            for start, stop, file in reversed(parts[max(0, at - _NEAR) : at]):
                if start <= span.start and span.stop <= stop:
                    yield file
            # Or all of the object, or any part.
            if parts and (span.start == span.stop or parts[0][0] == 0 < span.stop <= parts[0][1]):
                yield parts[0][2]

    def forget_others(self, state: str) -> list[str]:
        """Forget, and return, the files of all states but one."""
        others = [other for other in list(self.by_state) if other != state]
        return [file for other in others for _, _, file in self.by_state.pop(other, ())]


class CacheFiles:
    """Safe for any number of threads and processes.

    directory : made if it is missing; the files of zarrfs in it are private to this user.
    size : most bytes that all files may take together. Each process that uses the directory at
        the same time may exceed it by a twentieth.

    Raises UsageError for a directory that cannot be used.

    Shared state, under ``_lock``: ``_unseen``, bytes written since the files were examined;
    ``_pending``, bytes that are being written; ``_seen``, the files of the objects that were last
    used, and when their directory had been changed. ``_examining`` is held while room is made.
    """

    def __init__(self, directory: str, size: int) -> None:
        self._size = size
        root = os.path.join(os.path.abspath(directory), _NAME)
        self._lock = threading.Lock()
        self._examining = threading.Lock()
        self._unseen = size  # so that the first write examines the files
        self._pending = 0
        self._seen: OrderedDict[str, _Listed] = OrderedDict()
        self._rest_until = 0.0
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(root, 0o700)
            found = os.lstat(root)
            if stat.S_ISDIR(found.st_mode):
                opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                # At exit, threads may still use it.
                weakref.finalize(self, os.close, opened).atexit = False
                found = os.fstat(opened)
        except OSError as error:
            raise UsageError(f"{directory}: cannot be a disk cache: {error.strerror}") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o77:
            raise UsageError(f"{root}: is not a directory of this user alone")
        # Another user may be able to put something else at the path.
        self._root = f"/proc/self/fd/{opened}"

    def read(self, name: str, span: Span, generation: Generation | None) -> Part | None:
        """The kept part of an object that contains all of ``span``; any part for an empty span.

        name : of the object.
        generation : the state that the part must have; None: any.
        """
        state = None if generation is None else _digest(repr(generation))
        for part in self._files(name).holding(state, span):
            found = self._load(os.path.join(self._place(name), part))
            if found is not None:
                return found
        return None

    def holds(self, name: str) -> bool:
        """Whether any part of an object is kept."""
        return bool(self._files(name).by_state)

    def keep(self, name: str, info: ObjectInfo, start: int, data: Data) -> None:
        """Keep a part of an object, and drop the parts of its older states."""
        count = memoryview(data).nbytes
        taken = count + _BESIDE
        if taken > self._size or time.monotonic() < self._rest_until:
            return
        with self._lock:
            self._pending += taken
            self._unseen += taken
            look = self._unseen >= self._size * _LOOK
            if look:
                self._unseen = 0
        try:
            if look:
                self._make_room()
            self._write(name, info, start, data, count)
        finally:
            with self._lock:
                self._pending -= taken

    def drop(self, name: str, but: str = "") -> None:
        """Drop the parts of an object, in all states but one whose digest is given."""
        for file in self._files(name).forget_others(but):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._place(name), file))

    def _write(self, name: str, info: ObjectInfo, start: int, data: Data, count: int) -> None:
        state = _digest(repr(info.generation))
        head = json.dumps([info.size, info.mtime_ns, list(info.generation)]).encode()
        place = self._place(name)
        path = os.path.join(place, f"{state}.{start}.{count}")
        temporary = os.path.join(self._root, f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            self.drop(name, state)
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
        with self._lock, contextlib.suppress(OSError):
            if (listed := self._seen.get(name)) is not None:
                # Files that another process has added meanwhile are misses until the next change.
                listed.add(os.path.basename(path), state)
                listed.changed_ns = os.stat(place).st_mtime_ns

    def _make_room(self) -> None:
        """Examine all files, and remove the least recently used ones if their sum is too large."""
        path = os.path.join(self._root, "lock")
        with (
            self._examining,
            contextlib.suppress(OSError),
            open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as lock,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            files = sorted(self._all())
            total = sum(count for _, count, _ in files) + self._pending
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

    def _files(self, name: str) -> _Listed:
        """The files of an object; listed again only if its directory has changed."""
        place = self._place(name)
        try:
            changed_ns = os.stat(place).st_mtime_ns
            with self._lock:
                found = self._seen.get(name)
                if found is not None and found.changed_ns == changed_ns:
                    self._seen.move_to_end(name)
                    return found
            listed = _Listed(changed_ns)
            for file in os.listdir(place):
                listed.add(file, file.partition(".")[0])
        except OSError:
            return _Listed(0)
        with self._lock:
            self._seen[name] = listed
            if len(self._seen) > _MOST_OBJECTS:
                self._seen.popitem(last=False)
        return listed

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
    # With the length of the head, which says where the data begin.
    check = google_crc32c.value(len(head).to_bytes(4, "little") + bytes(head))
    return int(google_crc32c.extend(check, np.frombuffer(data, np.uint8)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]
