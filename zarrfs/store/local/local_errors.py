"""Converts errors of the operating system into errors of a store."""

from __future__ import annotations

from zarrfs.errors import (
    StoreAccessDenied,
    StoreError,
    StoreFull,
    StoreQuotaExceeded,
    StoreReadOnly,
)

# Linux's numbers, because Python has no class for these errors. They are the same on every
# architecture, except the last one, which differs on alpha, mips and sparc.
_INPUT_OUTPUT = 5
_CROSS_DEVICE = 18
_INVALID = 22
_NO_SPACE = 28
_READ_ONLY_FILE_SYSTEM = 30
_QUOTA = 122


def store_error(key: str, error: OSError) -> StoreError:
    """The error to raise instead of ``error``."""
    reason = error.strerror or type(error).__name__
    if isinstance(error, PermissionError):
        return StoreAccessDenied(key, reason)
    if error.errno == _NO_SPACE:
        return StoreFull(key, reason)
    if error.errno == _QUOTA:
        return StoreQuotaExceeded(key, reason)
    if error.errno == _READ_ONLY_FILE_SYSTEM:
        return StoreReadOnly(key, reason)
    return StoreError(key, reason)


def crosses_devices(error: OSError) -> bool:
    """Whether a rename failed because its two paths are on different file systems."""
    return error.errno == _CROSS_DEVICE


def loses_data(error: OSError) -> bool:
    """Whether the error means that bytes written earlier may never be stored."""
    return error.errno in (_INPUT_OUTPUT, _NO_SPACE, _QUOTA)


def not_applicable(error: OSError) -> bool:
    """Whether this kind of file on this file system does not support the operation."""
    return error.errno == _INVALID
