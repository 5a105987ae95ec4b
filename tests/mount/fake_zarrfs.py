"""A daemon with a file system that misbehaves, started as the real one is.

Usage: fake_zarrfs.py [NAME=SECONDS]… SOURCE MOUNTPOINT -o …

NAME is stall, drain or end for the settings of that name, or fail for one that fails: with 1 before
it is mounted, with 2 then, and before it serves. While SOURCE has a file ``hold``, opening it and
reads of ``nap`` wait.
"""

import logging
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from tests.mount.scripted import mount_scripted
from zarrfs import errors
from zarrfs.fs.attributes import Attributes, DirectoryEntry, OpenFile, OpenMode, Space
from zarrfs.fs.loop.answers import AfterReply, Answers

CONTENT = b"0123456789" * 1000

held = Path("hold")


def wait_while_held() -> None:
    while held.exists():
        time.sleep(0.01)


async def fine() -> bytes:
    return CONTENT


async def slow() -> bytes:
    """For longer than any test, as a store that does not answer."""
    await trio.sleep(3600)
    return CONTENT


async def deaf() -> bytes:
    """As `slow`, and cannot be cancelled either."""
    with trio.CancelScope(shield=True):
        await trio.sleep(3600)
    return CONTENT


async def stall() -> bytes:
    """Blocks the event loop."""
    time.sleep(3600)  # noqa: ASYNC251 - that is the point
    return CONTENT


async def nap() -> bytes:
    await trio.to_thread.run_sync(wait_while_held, abandon_on_cancel=True)
    return CONTENT


async def bug() -> bytes:
    raise ZeroDivisionError("a bug")


async def broken() -> str:
    """What no handler may return: pyfuse3 fails and `main` with it."""
    return "text" * 10


async def nursery() -> bytes:
    async with trio.open_nursery():
        raise errors.StoreTimeout("c/0", "too slow")


def raising(error: Exception):
    async def read() -> bytes:
        raise error

    return read


FILES = {
    "fine": fine,
    "slow": slow,
    "deaf": deaf,
    "stall": stall,
    "nap": nap,
    "bug": bug,
    "nursery": nursery,
    "broken": broken,
    "chunk": raising(errors.ChunkError("c/0", "is bad")),
    "denied": raising(errors.StoreAccessDenied("c/0", "forbidden")),
    "huge": raising(errors.BudgetExceeded("too much")),
}
NAMES = list(FILES)


class FakeFileSystem:
    """One directory of `FILES`; the inode of a file is its place there, from 2 on."""

    root_inode = 1

    def __init__(self) -> None:
        self.answers = Answers()
        self.after_reply = AfterReply()

    def set_kernel_cache(self, kernel_cache) -> None:
        pass

    async def lookup(self, parent: int, name: str) -> Attributes:
        if name not in FILES:
            raise errors.EntryNotFound(name)
        return await self.getattr(NAMES.index(name) + 2)

    async def getattr(self, inode: int) -> Attributes:
        size = 0 if inode == 1 else len(CONTENT)
        return Attributes(inode, inode == 1, size, size, 10**18 + 1, 60.0)

    async def readdir(self, inode: int, cookie: int) -> AsyncIterator[DirectoryEntry]:
        for position in range(cookie, 10_000):
            # More names than files, all of them real.
            name = NAMES[position] if position < len(NAMES) else f"n{position}"
            inode = position + 2
            yield DirectoryEntry(name, await self.getattr(inode), position + 1)

    def give(self, inode: int) -> None:
        pass

    def forget(self, inode: int, times: int) -> None:
        pass

    async def open_file(self, inode: int, mode: OpenMode) -> OpenFile:
        if mode.write:
            raise errors.ReadOnly(str(inode))
        return OpenFile(inode, keep_cache=False, direct=False)

    async def write(self, handle: int, offset: int, data: bytes) -> int:
        raise errors.FileTooLarge(str(handle))

    async def flush(self, handle: int) -> None:
        pass

    async def fsync(self, handle: int) -> None:
        pass

    async def read(self, handle: int, offset: int, size: int) -> bytes:
        return (await FILES[NAMES[handle - 2]]())[offset : offset + size]

    async def release(self, handle: int) -> None:
        pass

    async def getxattr(self, inode: int, name: str) -> bytes:
        raise errors.NoSuchAttribute(name)

    async def listxattr(self, inode: int) -> list[str]:
        return []

    async def statfs(self) -> Space:
        return Space(1 << 40, 1 << 39)

    dirty_bytes = 0
    writable_inodes = frozenset[int]()

    def settle(self) -> None:
        pass

    def drain(self) -> list[errors.ZarrfsError]:
        logging.getLogger("zarrfs.fake").info("drained")
        return []

    def lost_pages(self) -> list[errors.ZarrfsError]:
        return []

    async def reload(self) -> None:
        logging.getLogger("zarrfs.fake").info("reloaded")

    def summary(self) -> str:
        return "all is well"

    def describe_state(self) -> str:
        return "the state of the fake"

    def close(self) -> None:
        pass


async def no_event_loop(*_: object) -> None:
    """As one for which there are no descriptors left."""
    raise OSError("no event loop")


def main(arguments: list[str]) -> None:
    global held  # noqa: PLW0603 - one process has one mount
    plain = arguments[: arguments.index("-o")]
    *settings, source, mount_point = plain
    chosen = {name: float(value) for name, _, value in (text.partition("=") for text in settings)}
    held = Path(source, "hold")

    def serve(request, ready) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.lifecycle import LifecycleConfig
        from zarrfs.daemon.life.serve import ServeConfig, serve
        from zarrfs.fuse.watchdog import WatchdogConfig

        def open_filesystem(*_: object) -> FakeFileSystem:
            wait_while_held()
            filesystem = FakeFileSystem()
            if chosen.get("fail") == 1:
                del filesystem.answers
            if chosen.get("fail") == 2:
                serve.__globals__["Lifecycle"].live = no_event_loop
            return filesystem

        serve(
            request,
            ready,
            ServeConfig(
                LifecycleConfig(
                    drain_seconds=chosen.get("drain", 10.0), end_seconds=chosen.get("end", 30.0)
                ),
                WatchdogConfig(chosen.get("stall", 60.0)),
                open_filesystem=open_filesystem,
            ),
        )

    mount_scripted(source, mount_point, arguments, serve)


if __name__ == "__main__":
    main(sys.argv[1:])
