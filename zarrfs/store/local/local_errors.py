"""Converts errors of the operating system into errors of a store."""

from __future__ import annotations

import errno

from zarrfs.errors import (
    StoreAccessDenied,
    StoreError,
    StoreFull,
    StoreQuotaExceeded,
    StoreReadOnly,
    reason_of,
)

_KINDS: dict[int | None, type[StoreError]] = {
    errno.EACCES: StoreAccessDenied,
    errno.EPERM: StoreAccessDenied,
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreQuotaExceeded,
    errno.EROFS: StoreReadOnly,
}


def store_error(key: str, error: OSError) -> StoreError:
    """The error to raise instead of ``error``."""
    reason = error.strerror or reason_of(error)
    return _KINDS.get(error.errno, StoreError)(key, reason)


def crosses_devices(error: OSError) -> bool:
    """Whether a rename failed because its two paths are on different file systems."""
    return error.errno == errno.EXDEV


def loses_data(error: OSError) -> bool:
    """Whether the error means that bytes written earlier may never be stored."""
    return error.errno in (errno.EIO, errno.ENOSPC, errno.EDQUOT)


def not_applicable(error: OSError) -> bool:
    """Whether this kind of file on this file system does not support the operation."""
    return error.errno == errno.EINVAL


def lacks_kernel_copy(error: OSError) -> bool:
    """Whether the kernel, or one of two file systems, cannot copy a file to another one."""
    cannot = errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM
    return error.errno in cannot
