"""Requests of the kernel to a writable mount.

`flush` (each close of a file descriptor) and `fsync` return errors of the store to the writer.
`release` returns no errors.

Sizes and names are those of a fixed tree. Requests that change nothing succeed: setting times, or a
mode or owner that a file has already.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence

import pyfuse3

from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.operations import Operations, refuse_with
from zarrfs.fuse.presentation import Presentation


class WritableOperations(Operations):
    """Serves ``filesystem`` for reading and writing.

    xattr : whether there are extended attributes. With them the kernel asks for one
        before every write, which halves the speed of small ones; without them it asks
        once.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        presentation: Presentation,
        on_init: Callable[[], object] = lambda: None,
        *,
        xattr: bool = False,
    ) -> None:
        super().__init__(filesystem, presentation, on_init)
        self._xattr = xattr
        self._write = filesystem.write

    # --- data ---------------------------------------------------------------------

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        try:
            return await self._write(fh, off, buf)
        except Exception as error:  # noqa: BLE001 - see `Operations`
            raise self.failures.translate("write", error) from None

    async def flush(self, fh: int) -> None:
        try:
            await self.filesystem.flush(fh)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("flush", error) from None

    async def fsync(self, fh: int, datasync: bool) -> None:
        try:
            await self.filesystem.fsync(fh)
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("fsync", error) from None

    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        """Removed chunks are stored when `unlink` returns; nothing else changes in directories."""

    # --- attributes -----------------------------------------------------------------

    async def setattr(
        self,
        inode: int,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
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

    async def getxattr(self, inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> bytes:
        if not self._xattr:
            raise pyfuse3.FUSEError(errno.ENOSYS)
        return await super().getxattr(inode, name, ctx)

    async def listxattr(self, inode: int, ctx: pyfuse3.RequestContext) -> Sequence[bytes]:
        if not self._xattr:
            raise pyfuse3.FUSEError(errno.ENOSYS)
        return await super().listxattr(inode, ctx)

    # --- names ----------------------------------------------------------------------

    async def unlink(self, parent_inode: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        try:
            await self.filesystem.unlink(parent_inode, os.fsdecode(name))
        except Exception as error:  # noqa: BLE001
            raise self.failures.translate("unlink", error) from None

    # The kernel has made sure that names to be made do not exist (else EEXIST) and that
    # those to be removed do.
    create = refuse_with(errno.EPERM)
    mknod = refuse_with(errno.EPERM)
    mkdir = refuse_with(errno.EPERM)
    rmdir = refuse_with(errno.EPERM)
    symlink = refuse_with(errno.EPERM)
    rename = refuse_with(errno.EPERM)
    link = refuse_with(errno.EPERM)
    # Programs that copy attributes along take this for a file system that has none.
    setxattr = refuse_with(errno.EOPNOTSUPP)
    removexattr = refuse_with(errno.EOPNOTSUPP)
