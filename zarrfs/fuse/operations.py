"""Requests of the kernel to a read-only mount, translated into calls of the file system.

Nothing is decided here. Every handler ends in an answer or a `pyfuse3.FUSEError`: any
other exception would end the mount. Cancellation is a `BaseException` and passes.

`flush` and `fsync` stay "not implemented", which the kernel takes for success and does not
ask again: there is nothing to store, and each close saves a round trip. `access` is the
kernel's own business under ``default_permissions``. ``.`` and ``..`` are neither listed nor
looked up.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any, NoReturn

import pyfuse3

from zarrfs.errors import EntryNotFound, ObjectNotFound
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.failures import Failures
from zarrfs.fuse.presentation import NAME_MAX, Presentation

_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND | os.O_CREAT


# Typed so that it can stand in for any method, and any method for it.
def refuse_with(code: int) -> Any:
    """A handler for requests that end in the errno ``code``."""

    async def refuse(*_: object) -> NoReturn:
        raise pyfuse3.FUSEError(code)

    return refuse


_refuse = refuse_with(errno.EROFS)


class Operations(pyfuse3.Operations):
    """Serves ``filesystem`` read-only.

    on_init : called when the kernel begins to talk; must not raise.
    """

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(
        self,
        filesystem: FileSystem,
        presentation: Presentation,
        on_init: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self.filesystem = filesystem
        self.presentation = presentation
        self.failures = Failures()
        self._on_init = on_init
        # Bound once: `read` is the hot path.
        self._read = filesystem.read

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
            entry = self.presentation.blank()
            async with aclosing(self.filesystem.readdir(fh, start_id)) as entries:
                async for found in entries:
                    self.presentation.fill(entry, found.attributes)
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
            opened = await self.filesystem.open_file(
                inode,
                read=flags & os.O_ACCMODE != os.O_WRONLY,
                write=bool(flags & _CHANGES),
                truncate=bool(flags & os.O_TRUNC),
                append=bool(flags & os.O_APPEND),
                sync=bool(flags & os.O_DSYNC),
                paged=not flags & os.O_DIRECT,
            )
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

    async def release(self, fh: int) -> None:
        try:
            await self.filesystem.release(fh)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("release", error) from None

    # --- the rest that can be asked -----------------------------------------------

    async def readlink(self, inode: int, ctx: pyfuse3.RequestContext) -> bytes:
        raise pyfuse3.FUSEError(errno.EINVAL)

    async def getxattr(self, inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        try:
            return await self.filesystem.getxattr(inode, os.fsdecode(name))
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("getxattr", error) from None

    async def listxattr(self, inode: int, ctx: pyfuse3.RequestContext) -> Sequence[bytes]:
        try:
            return [os.fsencode(name) for name in await self.filesystem.listxattr(inode)]
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("listxattr", error) from None

    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        try:
            return self.presentation.space(await self.filesystem.statfs())
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("statfs", error) from None

    # --- what would change something ------------------------------------------------
    # The kernel refuses these itself on a mount with `ro`; a remount can take that away.

    write = _refuse
    create = _refuse
    mknod = _refuse
    mkdir = _refuse
    unlink = _refuse
    rmdir = _refuse
    symlink = _refuse
    rename = _refuse
    link = _refuse
    setattr = _refuse
    setxattr = _refuse
    removexattr = _refuse
