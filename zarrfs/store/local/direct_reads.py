"""Reading large parts of files past the kernel's page cache.

Whoever needs an object once, and keeps what it decodes to, has no use for its pages: making
them, and copying out of them, takes longer than the read itself where storage is fast. What the
kernel already has is read from there, as is all that a file system cannot read otherwise.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from contextlib import suppress

import numpy as np

from zarrfs.store.local.pread import pread_exactly

LEAST = 256 << 10
"""Bytes below which the page cache costs less than to wait for each read."""

# The most that is read so in one call.
_MOST = 1 << 30
# What every file system here can be asked for: offsets, lengths and memory in units of this.
_UNIT = 4096
# Parts of what is wanted, of which the kernel may have one without it being read from there.
_FEW = 8

_CACHESTAT = 451  # the same number on every architecture but alpha
_AT_EMPTY_PATH = 0x1000
_AT_STATX_DONT_SYNC = 0x4000
_STATX_DIOALIGN = 0x2000

_libc = ctypes.CDLL(None)
_syscall = _libc.syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint)
_syscall.restype = ctypes.c_long
# Not in every C library.
_statx = getattr(_libc, "statx", None)
if _statx is not None:
    _statx.argtypes = (
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_void_p,
    )


class _CachestatRange(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Cachestat(ctypes.Structure):
    """``pages`` : that the kernel has."""

    _fields_ = (("pages", ctypes.c_uint64), ("_others", ctypes.c_uint64 * 4))


class _Statx(ctypes.Structure):
    """``memory``, ``offset`` : what direct reads must be aligned to; 0: there are none."""

    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("_before", ctypes.c_uint8 * 148),
        ("memory", ctypes.c_uint32),
        ("offset", ctypes.c_uint32),
        ("_after", ctypes.c_uint8 * 96),
    )


def pread_direct(fd: int, offset: int, length: int) -> bytes | memoryview | None:
    """As `pread_exactly`; nobody else may use ``fd`` meanwhile."""
    if LEAST <= length <= _MOST and _is_possible(fd) and _is_cold(fd, offset, length):
        # What fails here may do as usual, or else tell why not.
        with suppress(OSError):
            if (data := _read(fd, offset, length)) is not None:
                return data
    return pread_exactly(fd, offset, length)


def _read(fd: int, offset: int, length: int) -> memoryview | None:
    """None where the file ends before that. Raises `OSError`."""
    start = offset - offset % _UNIT
    size = -(-(offset + length - start) // _UNIT) * _UNIT
    # Never cleared, as a bytearray would be.
    memory = np.empty(size + _UNIT, np.uint8)
    aligned = -int(memory.__array_interface__["data"][0]) % _UNIT
    data = memory.data[aligned : aligned + size]
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_DIRECT)
    try:
        count = os.preadv(fd, [data], start)
    finally:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags)
    skipped = offset - start
    return data[skipped : skipped + length].toreadonly() if count >= skipped + length else None


def _is_possible(fd: int) -> bool:
    """Whether the file can be read so; Linux tells since 6.1, of file systems on disks."""
    found = _Statx()
    flags = _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC
    if _statx is None or _statx(fd, b"", flags, _STATX_DIOALIGN, ctypes.byref(found)):
        return False
    told = found.mask & _STATX_DIOALIGN and found.memory and found.offset
    return bool(told and not _UNIT % found.memory and not _UNIT % found.offset)


def _is_cold(fd: int, offset: int, length: int) -> bool:
    """Whether the kernel has next to nothing of a part of a file; Linux tells since 6.5."""
    part, found = _CachestatRange(offset, length), _Cachestat()
    if _syscall(_CACHESTAT, fd, ctypes.byref(part), ctypes.byref(found), 0):
        return False
    return bool(found.pages * _UNIT * _FEW <= length)
