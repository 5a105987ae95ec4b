"""The one table from errors to errno.

A class that is not listed answers as its base; the most specific class wins.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType

from zarrfs import errors

ERRNOS: Mapping[type[BaseException], int] = MappingProxyType(
    {
        errors.ZarrfsError: errno.EIO,
        errors.UsageError: errno.EINVAL,
        # Errors of a store. A timeout is not EIO: it tells the reader that the data may be
        # fine and that trying again may help, as NFS does with its `softerr` option.
        # A conflict is EIO, not ESTALE, which the kernel and programs take for a handle to be
        # opened again.
        errors.StoreTimeout: errno.ETIMEDOUT,
        errors.StoreAccessDenied: errno.EACCES,
        errors.StoreReadOnly: errno.EROFS,
        errors.StoreFull: errno.ENOSPC,
        errors.StoreQuotaExceeded: errno.EDQUOT,
        errors.StoreListingUnsupported: errno.EOPNOTSUPP,
        # Errors in the data.
        errors.UnsupportedError: errno.EOPNOTSUPP,
        errors.NodeNotFound: errno.ENOENT,
        errors.AlreadyExists: errno.EEXIST,
        errors.BudgetExceeded: errno.ENOMEM,
        # Errors of a file system. Unsupported is not ENOSYS, after which the kernel never
        # asks again, for any inode.
        errors.EntryNotFound: errno.ENOENT,
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
