"""Reads ranges of several files, where some ranges depend on what others hold.

The kernel begins to read each range before any of them is waited for. So one thread keeps the disk
busy, where several threads would wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from zarrfs.errors import StoreError
from zarrfs.store.base import Blob, ByteRange, ObjectInfo, Steps
from zarrfs.store.local.beneath import READ
from zarrfs.store.local.local_root import (
    LocalRoot,
    encode,
    object_info,
    pread_exactly,
    same_contents,
)
from zarrfs.store.ranges import resolve

# About as many requests as a current disk handles at once.
_FILES = 32
# Bytes of all first ranges, which are in memory together.
_FIRST = 256 << 10


@dataclass(slots=True, eq=False, repr=False)
class _Begun:
    """An open file.

    blobs : what its first ranges hold.
    others : the other ranges.
    """

    fd: int
    info: ObjectInfo
    blobs: list[Blob]
    others: Sequence[ByteRange]


def in_groups(wanted: Sequence[Steps]) -> Iterator[list[Steps]]:
    """Objects that a `StepsAhead` takes at once: few files, and little memory for first ranges."""
    part: list[Steps] = []
    size = 0
    for steps in wanted:
        more = sum([first.length for first in steps.first])
        if part and (len(part) == _FILES or size + more > _FIRST):
            yield part
            part, size = [], 0
        part.append(steps)
        size += more
    if part:
        yield part


class StepsAhead:
    """A context in which files are open, and their ranges on the way to memory."""

    def __init__(self, root: LocalRoot, wanted: Sequence[Steps]) -> None:
        self._root = root
        self._wanted = wanted
        self._begun: list[_Begun | None] = []

    def __enter__(self) -> Self:
        # The kernel reads nothing ahead for one object that the read itself would not wait for.
        if len(self._wanted) > 1:
            try:
                for steps in self._wanted:
                    self._begun.append(self._open(steps))
                for number, steps in enumerate(self._wanted):
                    self._go_on(number, steps)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        for begun in self._begun:
            if begun is not None:
                os.close(begun.fd)

    def take(self, number: int) -> list[Blob] | None:
        """The ranges of an object, once; None if it has to be opened anew.

        That is so after a failure, for a missing object, and for one that changes meanwhile.
        """
        begun = self._begun[number] if self._begun else None
        if begun is None:
            return None
        self._begun[number] = None
        try:
            others = read_parts(begun.fd, begun.info, begun.others)
            if others is not None and same_contents(begun.info, os.fstat(begun.fd)):
                return begun.blobs + others
        except OSError:
            pass
        finally:
            os.close(begun.fd)
        return None

    def _open(self, steps: Steps) -> _Begun | None:
        try:
            if (fd := self._root.open_object(steps.key, encode(steps.key), READ)) is None:
                return None
        except StoreError:
            return None
        begun = None
        try:
            if (info := object_info(steps.key, os.fstat(fd))) is not None:
                _expect(fd, info, steps.first)
                begun = _Begun(fd, info, [], ())
        except (OSError, StoreError):
            pass
        finally:
            if begun is None:
                os.close(fd)
        return begun

    def _go_on(self, number: int, steps: Steps) -> None:
        """Read the first ranges, and have the kernel begin with the others."""
        if (begun := self._begun[number]) is None:
            return
        try:
            if (blobs := read_parts(begun.fd, begun.info, steps.first)) is not None:
                begun.blobs, begun.others = blobs, steps.then(blobs)
                _expect(begun.fd, begun.info, begun.others)
                return
        except OSError:
            pass
        self._begun[number] = None
        os.close(begun.fd)


def read_parts(fd: int, info: ObjectInfo, ranges: Sequence[ByteRange]) -> list[Blob] | None:
    """Ranges of an open file; None if it is shorter than ``info`` says. Raises `OSError`."""
    blobs = []
    for wanted in ranges:
        span = resolve(wanted, info.size)
        data = pread_exactly(fd, span.start, span.stop - span.start)
        if data is None:
            return None
        blobs.append(Blob(data, info))
    return blobs


def _expect(fd: int, info: ObjectInfo, ranges: Sequence[ByteRange]) -> None:
    """Have the kernel begin to read ranges of a file."""
    for wanted in ranges:
        start, stop = resolve(wanted, info.size)
        # For the kernel, no length is all of the file.
        if start < stop:
            os.posix_fadvise(fd, start, stop - start, os.POSIX_FADV_WILLNEED)
