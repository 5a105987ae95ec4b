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


class Recording:
    """Remembers what it is asked, and fails if told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple] = []
        self._error = error

    def __getattr__(self, name: str):
        async def method(*arguments: object, **_: object):
            self.asked.append((name, *arguments))
            if self._error is not None:
                raise self._error
            if name in ("getattr", "set_size"):
                return Attributes(2, False, 100, 100, 0, 1.0, writable=True)
            return 3 if name == "write" else None

        return method


class Fields:
    """As `pyfuse3.SetattrFields`, which cannot be made."""

    def __init__(self, *names: str) -> None:
        for name in ("size", "mode", "uid", "gid", "atime", "mtime", "ctime"):
            setattr(self, f"update_{name}", name in names)


def attributes(**values: int) -> pyfuse3.EntryAttributes:
    entry = pyfuse3.EntryAttributes()
    for name, value in values.items():
        setattr(entry, f"st_{name}", value)
    return entry


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
    filesystem = Recording(errors.ReadOnly(""))
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await Operations(filesystem, presentation).open(2, flags, None)
    reads = flags & os.O_ACCMODE != os.O_WRONLY
    how = {"truncate": flags == os.O_TRUNC, "append": flags == os.O_APPEND}
    how |= {"sync": bool(flags & os.O_DSYNC), "paged": not flags & os.O_DIRECT}
    mode = OpenMode(**({"read": reads, "write": True} | how))
    assert filesystem.asked == [("open_file", 2, mode)]
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
        "write": lambda: operations.write(5, 0, b"a"),
        "flush": lambda: operations.flush(5),
        "fsync": lambda: operations.fsync(5, False),
        "unlink": lambda: operations.unlink(1, b"0", None),
        "setattr": lambda: operations.setattr(2, attributes(size=0), Fields("size"), None, None),
    }


NAMES = list(requests(None))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ChunkError("c/0", "bad"), errno.EIO),
        (errors.StoreTimeout("c/0", "slow"), errno.ETIMEDOUT),
        (errors.BudgetExceeded("big"), errno.ENOMEM),
        (ExceptionGroup("", [errors.StoreAccessDenied("c/0", "no")]), errno.EACCES),
        (errors.FileTooLarge("end"), errno.EFBIG),
        (errors.NotPermitted("no"), errno.EPERM),
        (errors.StoreFull("c/0", "full"), errno.ENOSPC),
        (errors.StoreQuotaExceeded("c/0", "quota"), errno.EDQUOT),
        (errors.StoreReadOnly("c/0", "ro"), errno.EROFS),
        (errors.StoreConflict("c/0", "changed"), errno.EIO),
        (ZeroDivisionError(), errno.EIO),
        (MemoryError(), errno.ENOMEM),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_errors_become_errnos(presentation, error, code):
    operations = Operations(Misbehaving(error), presentation, writable=True)
    for name, request in requests(operations).items():
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await request()
        assert caught.value.errno == code, name


@pytest.mark.parametrize("name", [name for name in NAMES if name != "readdir"])
async def test_cancellation_passes(presentation, name):
    class Waiting:
        def __getattr__(self, name: str):
            async def method(*_: object, **__: object):
                await trio.sleep_forever()

            return method

    operations = Operations(Waiting(), presentation, writable=True)
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


async def test_missing_names_are_remembered_but_for_those_that_are_too_long(presentation):
    operations = Operations(Misbehaving(errors.EntryNotFound("a")), presentation)
    entry = await operations.lookup(1, b"a" * 255, None)
    assert (entry.st_ino, entry.entry_timeout) == (0, 1.0)
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


async def test_write_takes_the_bytes_as_they_come(presentation):
    filesystem, data = Recording(), b"abc"
    assert await Operations(filesystem, presentation).write(5, 10, data) == 3
    assert filesystem.asked == [("write", 5, 10, data)]
    assert filesystem.asked[0][3] is data


async def test_sizes_are_set_by_the_file_system(presentation):
    filesystem = Recording()
    operations = Operations(filesystem, presentation, writable=True)
    fields = Fields("size", "mtime")
    entry = await operations.setattr(2, attributes(size=0), fields, None, None)
    assert filesystem.asked == [("set_size", 2, 0)]
    assert entry.st_size == 100


@pytest.mark.parametrize(
    ("fields", "values", "allowed"),
    [
        (["atime", "mtime"], {}, True),
        (["ctime"], {}, True),
        (["mode"], {"mode": stat.S_IFREG | 0o640}, True),
        (["mode"], {"mode": stat.S_IFREG | 0o600}, False),
        (["mode"], {"mode": stat.S_IFREG | 0o4640}, False),
        (["uid", "gid"], {"uid": 7, "gid": 8}, True),
        (["uid"], {"uid": 8}, False),
        (["gid"], {"gid": 7}, False),
    ],
)
async def test_what_changes_nothing_is_allowed(presentation, fields, values, allowed):
    operations = Operations(Recording(), presentation, writable=True)
    request = operations.setattr(2, attributes(**values), Fields(*fields), None, None)
    if allowed:
        assert (await request).st_mode == stat.S_IFREG | 0o640
    else:
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await request
        assert caught.value.errno == errno.EPERM


async def test_extended_attributes_are_not_asked_for_again_unless_wanted(presentation):
    """After ENOSYS the kernel never asks again: not before each write either."""
    for xattr in (False, True):
        filesystem = Recording(errors.NoSuchAttribute("a"))
        served = Operations(filesystem, presentation, xattr=xattr)
        for request in (served.getxattr(2, b"a", None), served.listxattr(2, None)):
            with pytest.raises(pyfuse3.FUSEError) as caught:
                await request
            assert caught.value.errno == (errno.ENODATA if xattr else errno.ENOSYS)


@pytest.mark.parametrize(
    ("directory", "writable", "mode"),
    [
        (False, False, stat.S_IFREG | 0o440),
        (False, True, stat.S_IFREG | 0o640),
        (True, False, stat.S_IFDIR | 0o550),
        (True, True, stat.S_IFDIR | 0o750),
    ],
)
def test_modes(presentation, directory, writable, mode):
    entry = presentation.entry(Attributes(2, directory, 0, 0, 0, 1.0, writable))
    assert entry.st_mode == mode
