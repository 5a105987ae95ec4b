"""Requests and answers, with the file system that `fake_zarrfs` has and without a kernel."""

import errno
import inspect
import logging
import os
import stat
from collections import Counter

import pyfuse3
import pytest
import trio

from zarrfs import errors
from zarrfs.fs.attributes import Attributes, DirectoryEntry, OpenMode
from zarrfs.fuse.operations import Operations
from zarrfs.fuse.presentation import Presentation, PresentationConfig


class Misbehaving:
    """Every method raises ``error``."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def readdir(self, inode: int, cookie: int):
        raise self._error
        yield

    def __getattr__(self, name: str):
        async def method(*_: object, **__: object):
            raise self._error

        return method


@pytest.fixture
def presentation() -> Presentation:
    return Presentation(PresentationConfig(uid=7, gid=8, umask=0o027))


@pytest.mark.parametrize(
    "flags",
    [
        os.O_WRONLY,
        os.O_RDWR,
        os.O_TRUNC,
        os.O_APPEND,
        os.O_CREAT,
        os.O_WRONLY | os.O_SYNC,
        os.O_RDWR | os.O_DSYNC,
        os.O_RDWR | os.O_DIRECT,
    ],
)
async def test_opens_that_would_change_something(presentation, flags):
    asked = []

    class Recording:
        read = write = None

        async def open_file(self, inode: int, mode: OpenMode):
            asked.append(mode._asdict())
            raise errors.ReadOnly("")

    operations = Operations(Recording(), presentation)
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await operations.open(2, flags, None)
    reads = flags & os.O_ACCMODE != os.O_WRONLY
    how = {"truncate": flags == os.O_TRUNC, "append": flags == os.O_APPEND}
    how |= {"sync": bool(flags & os.O_DSYNC), "paged": not flags & os.O_DIRECT}
    assert asked == [{"read": reads, "write": True} | how]
    assert caught.value.errno == errno.EROFS


def requests(operations):
    return {
        "lookup": lambda: operations.lookup(1, b"a", None),
        "getattr": lambda: operations.getattr(2, None),
        "open": lambda: operations.open(2, 0, None),
        "read": lambda: operations.read(2, 0, 10),
        "release": lambda: operations.release(2),
        "getxattr": lambda: operations.getxattr(2, b"a", None),
        "listxattr": lambda: operations.listxattr(2, None),
        "statfs": lambda: operations.statfs(None),
        "readdir": lambda: operations.readdir(1, 0, None),
    }


NAMES = list(requests(None))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ChunkError("c/0", "bad"), errno.EIO),
        (errors.StoreTimeout("c/0", "slow"), errno.ETIMEDOUT),
        (errors.BudgetExceeded("big"), errno.ENOMEM),
        (ExceptionGroup("", [errors.StoreAccessDenied("c/0", "no")]), errno.EACCES),
        (ZeroDivisionError(), errno.EIO),
        (MemoryError(), errno.ENOMEM),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_errors_become_errnos(presentation, name, error, code):
    operations = Operations(Misbehaving(error), presentation)
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await requests(operations)[name]()
    assert caught.value.errno == code


@pytest.mark.parametrize("name", [name for name in NAMES if name != "readdir"])
async def test_cancellation_passes(presentation, name):
    class Waiting:
        def __getattr__(self, name: str):
            async def method(*_: object, **__: object):
                await trio.sleep_forever()

            return method

    operations = Operations(Waiting(), presentation)
    with trio.move_on_after(0.01) as scope:
        await requests(operations)[name]()
    assert scope.cancelled_caught


async def test_a_bug_is_logged_once(presentation, caplog):
    operations = Operations(Misbehaving(ZeroDivisionError("here")), presentation)
    with caplog.at_level(logging.INFO):
        for _ in range(100):
            with pytest.raises(pyfuse3.FUSEError):
                await operations.read(2, 0, 10)
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is not None


async def test_known_errors_are_not_logged_here(presentation, caplog):
    operations = Operations(Misbehaving(errors.ChunkError("c/0", "bad")), presentation)
    with pytest.raises(pyfuse3.FUSEError):
        await operations.read(2, 0, 10)
    assert caplog.records == []


async def test_names_that_are_too_long(presentation):
    operations = Operations(Misbehaving(errors.EntryNotFound("a")), presentation)
    assert (await operations.lookup(1, b"a" * 255, None)).st_ino == 0
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await operations.lookup(1, b"a" * 256, None)
    assert caught.value.errno == errno.ENAMETOOLONG


async def test_a_bug_in_forget_ends_nothing(presentation, caplog):
    forgotten = []

    class Forgetful:
        def __getattr__(self, name: str):
            return None

        def forget(self, inode: int, times: int) -> None:
            if inode == 2:
                raise ZeroDivisionError
            forgotten.append((inode, times))

    await Operations(Forgetful(), presentation).forget([(1, 1), (2, 1), (3, 2)])
    assert forgotten == [(1, 1), (3, 2)]
    assert "forget failed unexpectedly" in caplog.text


async def test_missing_names_are_remembered(presentation):
    operations = Operations(Misbehaving(errors.EntryNotFound("a")), presentation)
    entry = await operations.lookup(1, b"a", None)
    assert (entry.st_ino, entry.entry_timeout) == (0, 1.0)


def test_attributes_of_a_file(presentation):
    entry = presentation.entry(Attributes(5, False, 1 << 40, 513, 1_500_000_000_000_000_001, 2.5))
    assert entry.st_ino == 5
    assert entry.st_mode == stat.S_IFREG | 0o440
    assert (entry.st_uid, entry.st_gid, entry.st_nlink) == (7, 8, 1)
    assert (entry.st_size, entry.st_blocks) == (1 << 40, 2)
    assert entry.st_mtime_ns == entry.st_ctime_ns == 1_500_000_000_000_000_001
    assert entry.entry_timeout == entry.attr_timeout == 2.5


class Listed:
    """A directory of entries 2 to 9, and how often it was given which inode."""

    def __init__(self) -> None:
        self.given: Counter[int] = Counter()
        self.fails_at = 10

    read = write = None

    async def readdir(self, inode: int, cookie: int):
        for number in range(2, 10):
            if number == self.fails_at:
                raise errors.StoreTimeout("c/0", "slow")
            attributes = Attributes(number, False, 0, 0, 0, 60.0)
            yield DirectoryEntry(f"n{number}", attributes, number)

    def give(self, inode: int) -> None:
        self.given[inode] += 1

    def forget(self, inode: int, times: int) -> None:
        self.given[inode] -= times


async def test_the_kernel_knows_the_entries_that_it_took(presentation, monkeypatch):
    filesystem = Listed()
    operations = Operations(filesystem, presentation)
    monkeypatch.setattr(pyfuse3, "readdir_reply", lambda _token, _name, _entry, next_: next_ < 6)
    await operations.readdir(1, 0, None)
    assert filesystem.given == dict.fromkeys(range(2, 6), 1)
    filesystem.fails_at = 4
    with pytest.raises(pyfuse3.FUSEError):
        await operations.readdir(1, 0, None)
    assert filesystem.given == dict.fromkeys(range(2, 6), 1)
    await operations.forget([(2, 1), (5, 1)])
    assert +filesystem.given == {3: 1, 4: 1}


def test_every_request_is_served_or_known_not_to_be():
    """A new version of pyfuse3 may bring requests that nobody here has thought of."""
    known = {"access", "poll", "stacktrace"}
    all_of_them = {
        name
        for name, value in vars(pyfuse3.Operations).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    assert all_of_them - known <= set(vars(Operations))
