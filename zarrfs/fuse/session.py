"""One FUSE mount of this process, from mount to unmount. pyfuse3 has room for one."""

from __future__ import annotations

import errno
import logging
import os
import select
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import pyfuse3
import trio

from zarrfs.errors import MountError
from zarrfs.fuse import request_wait
from zarrfs.fuse.connection import Connection
from zarrfs.fuse.mount_point import writable_by_owner
from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE
from zarrfs.fuse.operations import Operations
from zarrfs.fuse.unmount import unmount as take_away

# Requests handled at once, each of which has a buffer of 1 MiB of address space. More than
# the kernel's background limit, so that a lookup gets through while that many reads wait.
_MAX_TASKS = 256
# Tasks kept waiting for requests, so that a burst does not start and end them one by one.
_IDLE_TASKS = 8

# The kernel takes one page for all options.
_MAX_SOURCE = 1024
_PLAIN = frozenset((string.ascii_letters + string.digits + "/:.-_+@%=~").encode())


class SessionConfig(NamedTuple):
    """How the file system is mounted; permissions are always checked by the kernel.

    writable : whether the kernel lets writes through.
    source : shown in the mount table; without credentials.
    allow_other : other users may use the mount.
    allow_root : root may use the mount, where another user mounts.
    """

    source: str
    writable: bool = False
    allow_other: bool = False
    allow_root: bool = False


class Session:
    """A mount that exists; `serve` it, then `close` it."""

    def __init__(self, operations: Operations, path: str, config: SessionConfig) -> None:
        """Mounts at ``path``, an absolute path without symbolic links.

        Raises `MountError` with what the kernel or fusermount3 says. Requests wait until
        `serve` runs.
        """
        logging.getLogger("pyfuse3").addFilter(worth_telling)
        with _stderr_text() as said, writable_by_owner(path):
            try:
                pyfuse3.init(operations, path, _mount_options(config))
            except RuntimeError as error:
                raise MountError(f"cannot mount at {path}: {_reason(said(), error)}") from error
        try:
            connection = Connection.find(path)
            if connection is None:
                raise MountError(f"cannot mount at {path}: it was unmounted at once")
            self._poll = select.poll()
            filesystem = operations.filesystem
            for descriptor in _fuse_descriptors():
                self._poll.register(descriptor, 0)  # errors alone, which are always told
                answers = filesystem.answers
                answers.watch(descriptor)
                after = filesystem.after_reply
                if request_wait.install(descriptor, answers.idle, answers.loop_times, after.run):
                    after.begin()
            self._loop_times = filesystem.answers.loop_times
            self.connection = connection.held()
            if self.disconnected:
                raise MountError(f"cannot mount at {path}: it was unmounted at once")
        except BaseException:
            pyfuse3.close()
            raise

    @property
    def disconnected(self) -> bool:
        """Whether the kernel has ended the connection: unmounted, or aborted.

        `serve` may go on for as long as requests are in flight, though nobody waits for
        their answers any more.
        """
        return bool(self._poll.poll(0))

    async def serve(self) -> None:
        """Answers requests until the mount is unmounted or `stop` is called."""
        trio.lowlevel.add_instrument(self._loop_times)
        await pyfuse3.main(min_tasks=_IDLE_TASKS, max_tasks=_MAX_TASKS)

    def stop(self) -> None:
        """Makes `serve` return once the requests in flight are answered. Event loop only."""
        pyfuse3.terminate()

    def close(self, *, unmount: bool) -> None:
        """Ends the connection; `serve` must have returned.

        unmount : take the mount away even where it is busy; else what is there stays, and
            answers "not connected". Another mount that has taken the place is left alone.
        """
        pyfuse3.close(unmount=unmount and self.connection.mounted)
        # pyfuse3 takes an aborted connection for an unmounted one.
        if unmount and self.connection.mounted:
            take_away(self.connection.path, lazy=True)
        self.connection.close()


def worth_telling(record: logging.LogRecord) -> bool:
    """Whether what pyfuse3 logs is more than that nobody waits for an answer any more.

    The kernel does not for the end of files that were closed just before it unmounted, and
    for requests that were interrupted.
    """
    return not ("fuse_reply" in record.msg and record.args == (os.strerror(errno.ENOENT),))


def _mount_options(config: SessionConfig) -> set[str]:
    options = {
        f"fsname={_escape(config.source)}",
        f"subtype={FILE_SYSTEM_TYPE.removeprefix('fuse.')}",
        "rw" if config.writable else "ro",
        "default_permissions",
    }
    if config.allow_other:
        options.add("allow_other")
    if config.allow_root:
        options.add("allow_root")
    return options


def _escape(text: str) -> str:
    """``text`` in the ASCII that libfuse turns back into its bytes; commas are one reason."""
    return "".join(
        chr(byte) if byte in _PLAIN else f"\\{byte:03o}"
        for byte in os.fsencode(text)[:_MAX_SOURCE].replace(b"\0", b"")
    )


def _reason(said: str, error: RuntimeError) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1].removeprefix("fusermount3: ").removeprefix("fuse: ") if lines else str(error)


def _fuse_descriptors() -> list[int]:
    """This process' ends of FUSE connections: one, which pyfuse3 keeps for itself."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing is gone
            if os.readlink(f"/proc/self/fd/{name}") == "/dev/fuse":
                found.append(int(name))
    return found


@contextmanager
def _stderr_text() -> Iterator[Callable[[], str]]:
    """Catches what libfuse and fusermount3 print; yields a function that returns it."""
    saved = os.dup(2)
    catcher = os.memfd_create("zarrfs-stderr")
    try:
        os.dup2(catcher, 2)
        yield lambda: os.pread(catcher, 1 << 16, 0).decode(errors="replace")
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(catcher)
