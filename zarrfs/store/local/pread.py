"""Reading part of an open file into one buffer, with the GIL released."""

from __future__ import annotations

import os

# One read(2) on Linux returns at most a page less than 2 GiB.
_ONE_CALL = 1 << 30


def pread_exactly(fd: int, offset: int, length: int) -> bytes | memoryview | None:
    """``length`` bytes from ``offset``, or None if the file ends earlier.

    Raises `OSError` as ``pread(2)`` does.
    """
    if length <= _ONE_CALL:
        # os.pread reads into the object that it returns, without clearing it first. This is the
        # fastest way for any size (a bytearray is zeroed first).
        data = os.pread(fd, length, offset)
        if len(data) == length:
            return data
    return _read_in_parts(fd, offset, length)


def _read_in_parts(fd: int, offset: int, length: int) -> memoryview | None:
    if offset + length > os.fstat(fd).st_size:
        return None
    view = memoryview(bytearray(length))
    done = 0
    while done < length:
        count = os.preadv(fd, [view[done : done + _ONE_CALL]], offset + done)
        if count == 0:
            return None
        done += count
    return view.toreadonly()
