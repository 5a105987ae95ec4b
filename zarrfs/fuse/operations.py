"""Requests of the kernel, translated into calls of the file system.

Nothing is decided here. Every handler ends in an answer or a `pyfuse3.FUSEError`: any
other exception would end the mount. Cancellation is a `BaseException` and passes.

On a read-only mount `flush` and `fsync` are "not implemented", which the kernel takes for success
and does not ask again: there is nothing to store, and each close saves a round trip. On a writable
one they return errors of the store to the writer; `release` returns no errors. `access` is the
kernel's own business under ``default_permissions``. ``.`` and ``..`` are neither listed nor
looked up.

Sizes and names are those of a fixed tree. Requests that change nothing succeed: setting times, or a
mode or owner that a file has already.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, NoReturn

import pyfuse3

from zarrfs.errors import EntryNotFound, ObjectNotFound
from zarrfs.fs.attributes import OpenMode
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.failures import Failures
from zarrfs.fuse.presentation import NAME_MAX, Presentation

_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND | os.O_CREAT


# Typed so that it can stand in for any method, and any method for it.
def _refuse_with(code: int) -> Any:
    """A handler for requests that end in the errno ``code``, or in EROFS if nothing is writable."""

    async def refuse(self: Operations, *_: object) -> NoReturn:
        raise pyfuse3.FUSEError(code if self.writable else errno.EROFS)

    return refuse


class Operations(pyfuse3.Operations):
    """Serves ``filesystem``.

    on_init : called when the kernel begins to talk; must not raise.
    writable : whether it can be written to. The kernel refuses that itself on a mount with `ro`; a
        remount can take that away.
    xattr : whether there are extended attributes. With them the kernel asks for one
        before every write, which halves the speed of small ones; without them it asks
        once.
    """

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(
        self,
        filesystem: FileSystem,
        presentation: Presentation,
        on_init: Callable[[], object] = lambda: None,
        *,
        writable: bool = False,
        xattr: bool = True,
    ) -> None:
        super().__init__()
        self.filesystem = filesystem
        self.presentation = presentation
        self.failures = Failures()
        self.writable = writable
        self._xattr = xattr
        self._on_init = on_init
        # Bound once: these are the hot paths.
        self._read = filesystem.read
        self._write = filesystem.write

    def init(self) -> None:
        self._on_init()

    # --- names and attributes ---------------------------------------------------

    async def lookup(
        self, parent_inode: int, name: bytes, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        try:
            attributes = await self.filesystem.lookup(parent_inode, os.fsdecode(name))
            return self.presentation.entry(attributes)
        except EntryNotFound as error:
            if len(name) > NAME_MAX:
                raise pyfuse3.FUSEError(errno.ENAMETOOLONG) from None
            return self.presentation.missing(remember=not isinstance(error, ObjectNotFound))
        except Exception as error:  # noqa: BLE001 - see the module's docstring
            raise self.failures.translate("lookup", error) from None

    async def getattr(self, inode: int, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        try:
            return self.presentation.entry(await self.filesystem.getattr(inode))
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("getattr", error) from None

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        for inode, times in inode_list:
            try:
                self.filesystem.forget(inode, times)
            except Exception as error:  # noqa: BLE001
                self.failures.translate("forget", error)  # the kernel waits for no answer

    # --- directories ------------------------------------------------------------

    async def opendir(self, inode: int, ctx: pyfuse3.RequestContext) -> int:
        # A directory has no state while it is read: the cookie says where to go on.
        return inode

    async def readdir(self, fh: int, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        given = []
        try:
            async with aclosing(self.filesystem.readdir(fh, start_id)) as entries:
                async for found in entries:
                    entry = self.presentation.entry(found.attributes)
                    name = os.fsencode(found.name)
                    if not pyfuse3.readdir_reply(token, name, entry, found.cookie):
                        break
                    given.append(found.attributes.inode)
                    self.filesystem.give(given[-1])
        except Exception as error:  # noqa: BLE001
            # The kernel gets none of them.
            for inode in given:
                self.filesystem.forget(inode, 1)
            raise self.failures.translate("readdir", error) from None

    async def releasedir(self, fh: int) -> None:
        pass

    # --- files ------------------------------------------------------------------

    async def open(self, inode: int, flags: int, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        try:
            mode = OpenMode(
                read=flags & os.O_ACCMODE != os.O_WRONLY,
                write=bool(flags & _CHANGES),
                truncate=bool(flags & os.O_TRUNC),
                append=bool(flags & os.O_APPEND),
                sync=bool(flags & os.O_DSYNC),
                paged=not flags & os.O_DIRECT,
            )
            opened = await self.filesystem.open_file(inode, mode)
            return pyfuse3.FileInfo(
                fh=opened.handle, direct_io=opened.direct, keep_cache=opened.keep_cache
            )
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("open", error) from None

    # Whatever has the buffer protocol is sent without a copy, though pyfuse3 says bytes.
    async def read(  # type: ignore[override]
        self, fh: int, off: int, size: int
    ) -> bytes | bytearray | memoryview:
        try:
            return await self._read(fh, off, size)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("read", error) from None

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        try:
            return await self._write(fh, off, buf)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("write", error) from None

    async def flush(self, fh: int) -> None:
        if not self.writable:
            raise pyfuse3.FUSEError(errno.ENOSYS)
        try:
            await self.filesystem.flush(fh)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("flush", error) from None

    async def fsync(self, fh: int, datasync: bool) -> None:
        if not self.writable:
            raise pyfuse3.FUSEError(errno.ENOSYS)
        try:
            await self.filesystem.fsync(fh)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("fsync", error) from None

    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        """Removed chunks are stored when `unlink` returns; nothing else changes in directories."""

    async def release(self, fh: int) -> None:
        try:
            await self.filesystem.release(fh)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("release", error) from None

    # --- the rest that can be asked -----------------------------------------------

    async def readlink(self, inode: int, ctx: pyfuse3.RequestContext) -> bytes:
        raise pyfuse3.FUSEError(errno.EINVAL)

    async def getxattr(self, inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        if not self._xattr:
            raise pyfuse3.FUSEError(errno.ENOSYS)
        try:
            return await self.filesystem.getxattr(inode, os.fsdecode(name))
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("getxattr", error) from None

    async def listxattr(self, inode: int, ctx: pyfuse3.RequestContext) -> Sequence[bytes]:
        if not self._xattr:
            raise pyfuse3.FUSEError(errno.ENOSYS)
        try:
            return [os.fsencode(name) for name in await self.filesystem.listxattr(inode)]
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("listxattr", error) from None

    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        try:
            return self.presentation.space(await self.filesystem.statfs())
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("statfs", error) from None

    # --- changes of attributes and names ----------------------------------------------

    async def setattr(
        self,
        inode: int,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        if not self.writable:
            raise pyfuse3.FUSEError(errno.EROFS)
        try:
            if fields.update_size:
                found = await self.filesystem.set_size(inode, attr.st_size)
            else:
                found = await self.filesystem.getattr(inode)
            entry = self.presentation.entry(found)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("setattr", error) from None
        if (
            (fields.update_mode and attr.st_mode & 0o7777 != entry.st_mode & 0o7777)
            or (fields.update_uid and attr.st_uid != entry.st_uid)
            or (fields.update_gid and attr.st_gid != entry.st_gid)
        ):
            raise pyfuse3.FUSEError(errno.EPERM)
        return entry

    async def unlink(self, parent_inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        try:
            await self.filesystem.unlink(parent_inode, os.fsdecode(name))
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("unlink", error) from None

    # The kernel has made sure that names to be made do not exist (else EEXIST) and that
    # those to be removed do.
    create = _refuse_with(errno.EPERM)
    mknod = _refuse_with(errno.EPERM)
    mkdir = _refuse_with(errno.EPERM)
    rmdir = _refuse_with(errno.EPERM)
    symlink = _refuse_with(errno.EPERM)
    rename = _refuse_with(errno.EPERM)
    link = _refuse_with(errno.EPERM)
    # Programs that copy attributes along take this for a file system that has none.
    setxattr = _refuse_with(errno.EOPNOTSUPP)
    removexattr = _refuse_with(errno.EOPNOTSUPP)
