"""Reads many whole files, and opens the next ones meanwhile.

The kernel begins to read each file when it is open. So one thread keeps the disk busy.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from zarrfs.errors import StoreError
from zarrfs.store.base import Blob, ObjectInfo
from zarrfs.store.local.beneath import READ
from zarrfs.store.local.local_root import (
    LocalRoot,
    encode,
    object_info,
    pread_exactly,
    same_contents,
)

# Files that the kernel reads ahead: about as many requests as a current disk handles at once.
_AHEAD = 32


class _Opened(NamedTuple):
    """A file opened ahead of its read; without ``info``, ``otherwise`` opens it anew."""

    key: str
    fd: int | None
    info: ObjectInfo | None


_MISSING = ObjectInfo(0, None, ())


def read_ahead(
    root: LocalRoot,
    keys: Sequence[str],
    limit: int,
    otherwise: Callable[[str], Blob | StoreError | None],
) -> Iterator[Blob | StoreError | None]:
    """See `Store.get_many`.

    otherwise : reads a file that could not be read ahead, to get the error.
    """
    soon = (_open(root, key, limit) for key in keys)
    ready: deque[_Opened] = deque()
    try:
        ready.extend(islice(soon, _AHEAD))
        while ready:
            yield _take(ready.popleft(), otherwise)
            ready.extend(islice(soon, 1))
    finally:
        for opened in ready:
            if opened.fd is not None:
                os.close(opened.fd)


def _open(root: LocalRoot, key: str, limit: int) -> _Opened:
    """Open a file and have the kernel begin to read it."""
    opened = None
    try:
        fd = root.open_object(key, encode(key), READ)
        if fd is None:
            return _Opened(key, None, _MISSING)
        try:
            info = object_info(key, os.fstat(fd))
            if info is not None and info.size <= limit:
                os.posix_fadvise(fd, 0, info.size, os.POSIX_FADV_WILLNEED)
                opened = _Opened(key, fd, info)
        finally:
            if opened is None:
                os.close(fd)
    except (OSError, StoreError):
        opened = None
    return opened or _Opened(key, None, None)


def _take(
    opened: _Opened, otherwise: Callable[[str], Blob | StoreError | None]
) -> Blob | StoreError | None:
    """Read a file that was opened ahead."""
    key, fd, info = opened
    if info is _MISSING:
        return None
    if fd is not None and info is not None:
        try:
            data = pread_exactly(fd, 0, info.size)
            if data is not None and same_contents(info, os.fstat(fd)):
                return Blob(data, info)
        except OSError:
            pass
        finally:
            os.close(fd)
    return otherwise(key)
