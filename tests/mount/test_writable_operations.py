"""Requests that change something, and their answers, without a kernel."""

import errno
import stat

import pyfuse3
import pytest

from zarrfs import errors
from zarrfs.fs.attributes import Attributes
from zarrfs.fuse.operations import Operations
from zarrfs.fuse.presentation import Presentation, PresentationConfig

PRESENTATION = Presentation(PresentationConfig(uid=7, gid=8, umask=0o002))


class Recording:
    """A file system that remembers what it is asked, and fails if told to."""

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


def operations(filesystem: object, *, xattr: bool = False) -> Operations:
    return Operations(filesystem, PRESENTATION, writable=True, xattr=xattr)


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


async def test_write_takes_the_bytes_as_they_come():
    filesystem, data = Recording(), b"abc"
    assert await operations(filesystem).write(5, 10, data) == 3
    assert filesystem.asked == [("write", 5, 10, data)]
    assert filesystem.asked[0][3] is data


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.FileTooLarge("end"), errno.EFBIG),
        (errors.NotPermitted("no"), errno.EPERM),
        (errors.StoreFull("c/0", "full"), errno.ENOSPC),
        (errors.StoreQuotaExceeded("c/0", "quota"), errno.EDQUOT),
        (errors.StoreReadOnly("c/0", "ro"), errno.EROFS),
        (errors.StoreAccessDenied("c/0", "no"), errno.EACCES),
        (errors.StoreTimeout("c/0", "slow"), errno.ETIMEDOUT),
        (errors.StoreConflict("c/0", "changed"), errno.EIO),
        (errors.ChunkError("c/0", "damaged"), errno.EIO),
        (ZeroDivisionError(), errno.EIO),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_errors_become_errnos(error, code):
    served = operations(Recording(error))
    for request in (
        lambda: served.write(5, 0, b"a"),
        lambda: served.flush(5),
        lambda: served.fsync(5, False),
        lambda: served.unlink(1, b"0", None),
        lambda: served.setattr(2, attributes(size=0), Fields("size"), None, None),
    ):
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await request()
        assert caught.value.errno == code


async def test_sizes_are_set_by_the_file_system():
    filesystem = Recording()
    entry = await operations(filesystem).setattr(
        2, attributes(size=0), Fields("size", "mtime"), None, None
    )
    assert filesystem.asked == [("set_size", 2, 0)]
    assert entry.st_size == 100


@pytest.mark.parametrize(
    ("fields", "values", "allowed"),
    [
        (["atime", "mtime"], {}, True),
        (["ctime"], {}, True),
        (["mode"], {"mode": stat.S_IFREG | 0o644}, True),
        (["mode"], {"mode": stat.S_IFREG | 0o600}, False),
        (["mode"], {"mode": stat.S_IFREG | 0o4644}, False),
        (["uid", "gid"], {"uid": 7, "gid": 8}, True),
        (["uid"], {"uid": 8}, False),
        (["gid"], {"gid": 7}, False),
    ],
)
async def test_what_changes_nothing_is_allowed(fields, values, allowed):
    request = operations(Recording()).setattr(2, attributes(**values), Fields(*fields), None, None)
    if allowed:
        assert (await request).st_mode == stat.S_IFREG | 0o644
    else:
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await request
        assert caught.value.errno == errno.EPERM


async def test_extended_attributes_are_not_asked_for_again_unless_wanted():
    """After ENOSYS the kernel never asks again: not before each write either."""
    for xattr in (False, True):
        served = operations(Recording(errors.NoSuchAttribute("a")), xattr=xattr)
        for request in (served.getxattr(2, b"a", None), served.listxattr(2, None)):
            with pytest.raises(pyfuse3.FUSEError) as caught:
                await request
            assert caught.value.errno == (errno.ENODATA if xattr else errno.ENOSYS)


@pytest.mark.parametrize(
    ("directory", "writable", "mode"),
    [
        (False, False, stat.S_IFREG | 0o444),
        (False, True, stat.S_IFREG | 0o644),
        (True, False, stat.S_IFDIR | 0o555),
        (True, True, stat.S_IFDIR | 0o755),
    ],
)
def test_modes(directory, writable, mode):
    entry = PRESENTATION.entry(Attributes(2, directory, 0, 0, 0, 1.0, writable))
    assert entry.st_mode == mode
