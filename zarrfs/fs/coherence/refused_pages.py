"""Pages changed in mappings that the file system has refused to take.

The kernel hands over a page that a program changed in a mapping, and takes it for clean whatever
the answer is. So a page that is refused, because the store is full and there is no memory for more
changes, is in nobody's care any more: the kernel will not hand it over again, and tells of the
error only the first descriptor that is closed and each open file once that syncs. A later sync
would succeed and the page would never be stored.

So refused ranges are remembered. As long as one of them has not been written again, every fsync and
close of the file fails.
"""

from __future__ import annotations

import mmap

from zarrfs.errors import ZarrfsError

_LARGEST_FILE = 1 << 63
# Ranges of one file; more are taken for one that spans them all.
_MOST_RANGES = 256


class RefusedPages:
    """The refused pages of all files of a mount, by inode. Loop only."""

    def __init__(self) -> None:
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        self._errors: dict[int, ZarrfsError] = {}

    def __contains__(self, inode: int) -> bool:
        return inode in self._ranges

    def refused(self, inode: int, start: int, stop: int, error: ZarrfsError) -> None:
        """The bytes from ``start`` up to ``stop`` were not taken, for that reason."""
        self.taken(inode, start, stop)
        ranges = self._ranges.setdefault(inode, [])
        if ranges and ranges[-1][1] == start:
            start = ranges.pop()[0]
        ranges.append((start, stop))
        if len(ranges) > _MOST_RANGES:
            ranges[:] = [(min(a for a, _ in ranges), max(b for _, b in ranges))]
        self._errors[inode] = error.without_frames()

    def taken(self, inode: int, start: int, stop: int) -> None:
        """The bytes from ``start`` up to ``stop`` have been written."""
        if (ranges := self._ranges.get(inode)) is None:
            return
        left = [
            (first, last)
            for a, b in ranges
            for first, last in ((a, min(b, start)), (max(a, stop), b))
            if first < last
        ]
        if left:
            self._ranges[inode] = left
        else:
            self.forget(inode)

    def cut(self, inode: int, size: int) -> None:
        """A file ends at ``size`` now."""
        self.taken(inode, size, _LARGEST_FILE)

    @property
    def errors(self) -> list[ZarrfsError]:
        """Why something is missing, for each file."""
        return [error.with_traceback(None) for error in self._errors.values()]

    def check(self, inode: int, size: int) -> None:
        """Raise the error with which bytes before ``size`` were refused that are still missing."""
        if any(start < size for start, _ in self._ranges.get(inode, ())):
            raise self._errors[inode].with_traceback(None)

    def forget(self, inode: int) -> None:
        """Nobody has the file open for writing any more."""
        self._ranges.pop(inode, None)
        self._errors.pop(inode, None)


def looks_like_pages(offset: int, length: int, size: int) -> bool:
    """Whether this may be what the kernel hands over of a mapping: whole pages, up to the end."""
    end = offset + length
    return not offset % mmap.PAGESIZE and (not end % mmap.PAGESIZE or end >= size)
