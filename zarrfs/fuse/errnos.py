"""The one table from errors to errno.

The most specific class wins, so a subclass that is not listed answers as its base.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType

from zarrfs import errors

ERRNOS: Mapping[type[BaseException], int] = MappingProxyType(
    {
        # Never meant for a request; listed so that nothing of ours is without an errno.
        errors.ZarrfsError: errno.EIO,
        errors.UsageError: errno.EINVAL,
        errors.MountError: errno.EIO,
        errors.JournalError: errno.EIO,
        errors.LocatedError: errno.EIO,
        # Errors of a store. A timeout is not EIO: it tells the reader that the data may be
        # fine and that trying again may help, as NFS does with its `softerr` option.
        errors.StoreError: errno.EIO,
        errors.StoreUnavailable: errno.EIO,
        errors.StoreTimeout: errno.ETIMEDOUT,
        errors.StoreAccessDenied: errno.EACCES,
        errors.StoreReadOnly: errno.EROFS,
        errors.StoreFull: errno.ENOSPC,
        errors.StoreQuotaExceeded: errno.EDQUOT,
        # Not ESTALE, which the kernel and programs take for a handle to be opened again.
        errors.StoreConflict: errno.EIO,
        errors.StoreTooLarge: errno.EIO,
        errors.StoreListingUnsupported: errno.EOPNOTSUPP,
        # Errors in the data.
        errors.FormatError: errno.EIO,
        errors.MetadataError: errno.EIO,
        errors.UnsupportedError: errno.EOPNOTSUPP,
        errors.NodeNotFound: errno.ENOENT,
        errors.AlreadyExists: errno.EEXIST,
        errors.DecodeError: errno.EIO,
        errors.TooLongToDecode: errno.EIO,
        errors.ChunkError: errno.EIO,
        errors.MissingChunkError: errno.EIO,
        errors.EncodingChanged: errno.EIO,
        errors.BudgetExceeded: errno.ENOMEM,
        # Errors of a file system. Unsupported is not ENOSYS, after which the kernel never
        # asks again, for any inode.
        errors.EntryNotFound: errno.ENOENT,
        errors.ObjectNotFound: errno.ENOENT,
        errors.NotADirectory: errno.ENOTDIR,
        errors.IsADirectory: errno.EISDIR,
        errors.ReadOnly: errno.EROFS,
        errors.NoSuchAttribute: errno.ENODATA,
        errors.BadHandle: errno.EBADF,
        errors.NotPermitted: errno.EPERM,
        errors.InvalidElement: errno.EINVAL,
        errors.FileTooLarge: errno.EFBIG,
        errors.Unsupported: errno.EOPNOTSUPP,
        # Errors of Python with a meaning.
        MemoryError: errno.ENOMEM,
    }
)

UNKNOWN = errno.EIO
"""For every other exception, all of which are bugs."""


def errno_of(error: BaseException) -> int | None:
    """The errno that ``error`` becomes, or None where the table does not know it."""
    for kind in type(error).__mro__:
        if (found := ERRNOS.get(kind)) is not None:
            return found
    return None
