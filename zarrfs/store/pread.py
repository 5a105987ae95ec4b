"""Reading part of an open file into one buffer, with the GIL released."""

from __future__ import annotations

import os

import numpy as np

# The kernel reads ahead of whoever reads on and on, into ever larger pages where the file system
# has such; asked for much at once, it takes pages of 4 KiB, and a third more of processor time.
PIECE = 256 << 10


def pread_exactly(fd: int, offset: int, length: int) -> bytes | memoryview | None:
    """``length`` bytes from ``offset``, or None where the file ends before that.

    Raises `OSError` as ``pread(2)`` does.
    """
    if length <= PIECE:
        # os.pread reads into the object it returns, which was never cleared: nothing
        # beats it (a bytearray is zeroed first).
        data = os.pread(fd, length, offset)
        if len(data) == length:
            return data
    return _read_in_parts(fd, offset, length)


def _read_in_parts(fd: int, offset: int, length: int) -> memoryview | None:
    if offset + length > os.fstat(fd).st_size:
        return None
    view = np.empty(length, np.uint8).data
    done = 0
    while done < length:
        count = os.preadv(fd, [view[done : done + PIECE]], offset + done)
        if count == 0:
            return None
        done += count
    return view.toreadonly()
