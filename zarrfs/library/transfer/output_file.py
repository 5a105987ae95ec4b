"""Where exported bytes go: a new file that takes its place when it is whole, or a stream."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from zarrfs.library.transfer.transfer import STANDARD_STREAM, TransferError, naming

PART = ".zarrfs-part"
"""Ends the name of a file that is not whole yet."""

_STATE = ".json"
_CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LARGEST_STATE = 1 << 16
_NOTE_SECONDS = 2.0


class OutputClosed(TransferError):
    """The reader of the output has closed it."""


class Output:
    """
    seekable : whether it can be written in any order.
    done : how many tiles it has already.
    path : of the file that other processes may write to; "": only this one can write.
    """

    seekable = False
    path = ""

    def __init__(self, name: str, fd: int = -1) -> None:
        self._name = name
        self._fd = fd
        self.done = 0

    def write(self, offset: int, data: memoryview) -> None:
        """Raises TransferError. A part of a seekable file that is not written has zeros."""
        raise NotImplementedError

    def note(self, done: int) -> None:
        """So many tiles are written."""


@contextmanager
def output(
    name: str,
    size: int,
    identity: Mapping[str, Any],
    *,
    resume: bool,
    overwrite: bool,
    holes: int = 0,
    tile: int = 0,
) -> Iterator[Output]:
    """Opens ``name`` for writing; what is written takes its place at the end, all at once.

    size : of all that will be written, in bytes.
    identity : tells this export from every other, as JSON.
    holes : bytes of a file that will not be written.
    tile : bytes of each tile, if they lie one behind the other, else 0.
    resume : keep what is there when it fails, and go on with what was kept.

    Raises TransferError where the file cannot be written, exists and ``overwrite``
    does not allow it, or where there is no room for it.
    """
    if name == STANDARD_STREAM:
        sys.stdout.flush()
        yield _Stream("standard output", sys.stdout.fileno())
        return
    mode = None
    with naming(name), contextlib.suppress(FileNotFoundError):
        mode = os.stat(name).st_mode
    if mode is not None and stat.S_ISDIR(mode):
        raise TransferError(f"{name}: is a directory")
    if mode is None or stat.S_ISREG(mode):
        if mode is not None and not overwrite:
            raise TransferError(f"{name}: exists; --overwrite replaces it")
        with _PartFile(name, size, holes, tile, identity, resume=resume) as part:
            yield part
        return
    # A FIFO or a device: there is nothing to be renamed.
    with naming(name):
        fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield _Stream(name, fd)
            if stat.S_ISBLK(mode):
                os.fsync(fd)
        finally:
            os.close(fd)


class _Stream(Output):
    """Written from the beginning to the end."""

    _position = 0

    def write(self, offset: int, data: memoryview) -> None:
        assert offset == self._position, "a stream cannot go back"
        self._position += len(data)
        with naming(self._name):
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except BrokenPipeError as error:
                raise OutputClosed(f"{self._name}: its reader has closed it") from error


@contextmanager
def part_of(path: str) -> Iterator[Output]:
    """A file that is not whole yet, of an export in another process, which must have made it.

    At the end all is on the disk. Raises TransferError.
    """
    with naming(path):
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            yield _Part(path, fd)
            os.fsync(fd)
        finally:
            os.close(fd)


class _Part(Output):
    """Any part of a file."""

    seekable = True

    def write(self, offset: int, data: memoryview) -> None:
        with naming(self._name):
            while data:
                written = os.pwrite(self._fd, data, offset)
                offset += written
                data = data[written:]


class _PartFile(_Part):
    """A file beside its place. A second file records the progress, if it may be resumed.

    The tiles that are noted are on the disk before the note is.
    """

    def __init__(
        self,
        name: str,
        size: int,
        holes: int,
        tile: int,
        identity: Mapping[str, Any],
        *,
        resume: bool,
    ) -> None:
        super().__init__(name)
        # The file itself is replaced, not a link that leads to it.
        self._place = os.path.realpath(name)
        self._size = size
        self._written = size - holes
        self._tile = tile
        self._identity = dict(identity)
        self._resume = resume
        self.path = f"{self._place}{'' if resume else '.' + secrets.token_hex(4)}{PART}"
        self._noted = time.monotonic()

    def __enter__(self) -> _PartFile:
        try:
            with naming(self._name):
                self._fd = os.open(self.path, _CREATE | (0 if self._resume else os.O_EXCL), 0o666)
                self._open()
        except BaseException as error:
            if isinstance(error.__cause__, FileExistsError):
                self.path = ""  # another program's file
            self._abandon()
            raise
        return self

    def _open(self) -> None:
        if self._resume:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise TransferError(f"{self._name}: is being exported already") from error
            self.done = self._read_state()
        here = os.fstat(self._fd).st_blocks * 512
        space = os.fstatvfs(self._fd)
        free = space.f_bavail * space.f_frsize + here
        if self._written > free and space.f_blocks:
            raise TransferError(
                f"{self._name}: no room: needs {self._written} bytes, {free} are free"
            )
        if self._tile or not self.done:
            # Bytes beyond the noted tiles may lie where there are holes now.
            os.ftruncate(self._fd, self.done * self._tile)

    def note(self, done: int) -> None:
        self.done = done
        if self._resume and time.monotonic() - self._noted >= _NOTE_SECONDS:
            with naming(self._name):
                self._write_state()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with naming(self._name):
                    self._finish()
            elif self._resume:
                with contextlib.suppress(OSError):
                    self._write_state()
        finally:
            self._abandon()

    def _finish(self) -> None:
        os.ftruncate(self._fd, self._size)
        os.fsync(self._fd)
        with contextlib.suppress(OSError):
            # As the one that it replaces was; of others' files not all can be taken over.
            os.fchmod(self._fd, stat.S_IMODE(os.stat(self._place).st_mode))
        os.rename(self.path, self._place)
        self._sync_directory()
        self.path = ""
        if self._resume:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._place + PART + _STATE)

    def _abandon(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        # A signal may come when the file is made and its descriptor not noted yet.
        if self.path and not self._resume:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def _read_state(self) -> int:
        """How many tiles are there. Raises TransferError where they are of something else."""
        try:
            with open(self.path + _STATE, "rb") as file:
                state = json.loads(file.read(_LARGEST_STATE))
            identity, done = state["identity"], int(state["done"])
        except FileNotFoundError:
            return 0
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable("cannot be read") from error
        if identity != self._identity:
            raise self._unusable("is of another export, or of an array that has changed")
        return max(0, done)

    def _unusable(self, reason: str) -> TransferError:
        state = self.path + _STATE
        return TransferError(f"{state} {reason}: remove it and {self.path} to begin anew")

    def _write_state(self) -> None:
        os.fdatasync(self._fd)
        state = self.path + _STATE
        with open(state + ".new", "w", encoding="utf-8") as file:
            json.dump({"identity": self._identity, "done": self.done}, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(state + ".new", state)
        self._noted = time.monotonic()

    def _sync_directory(self) -> None:
        fd = os.open(os.path.dirname(self._place) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            with contextlib.suppress(OSError):  # some file systems cannot
                os.fsync(fd)
        finally:
            os.close(fd)
