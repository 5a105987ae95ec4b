"""Writes buffers to a file in few calls, with the GIL released."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from zarrfs.store.base import ByteRange, Data, ObjectInfo

_IOV_MAX = os.sysconf("SC_IOV_MAX")
# Bytes written together. Some parts are produced only when reached, so few are in memory at once.
_LEAST_BYTES = 4 << 20


@runtime_checkable
class CopiesRanges(Protocol):
    """A store whose bytes the kernel can copy to a file."""

    def copy_range(self, key: str, info: ObjectInfo, span: ByteRange, fd: int) -> bool:
        """Write ``span`` of an object at the position of the file ``fd``.

        False if the object is not in the state of ``info``; the file may then have any bytes.
        Raises `OSError`, StoreError.
        """
        ...


@runtime_checkable
class WritesItself(Protocol):
    """Parts that write themselves to a file, with fewer copies."""

    def write_to(self, fd: int) -> None: ...


def write_parts(fd: int, parts: Sequence[Data]) -> None:
    """Write all bytes of ``parts`` at the file's position.

    Raises `OSError`, and the exceptions of iterating over ``parts``.
    """
    if isinstance(parts, WritesItself):
        parts.write_to(fd)
        return
    views: list[memoryview] = []
    size = 0
    for part in parts:
        view = memoryview(part)
        if not view.nbytes:
            continue
        views.append(view)
        size += view.nbytes
        if size >= _LEAST_BYTES or len(views) == _IOV_MAX:
            _write(fd, views)
            views, size = [], 0
    _write(fd, views)


def _write(fd: int, left: list[memoryview]) -> None:
    # One write may take fewer bytes than it gets: at most 2 GiB, or what the disk has room for.
    at = 0
    while at < len(left):
        written = os.writev(fd, left[at:])
        while at < len(left) and written >= left[at].nbytes:
            written -= left[at].nbytes
            at += 1
        if written:
            left[at] = left[at].cast("B")[written:]
