"""Writes that go past the kernel's pages, and the pages that others have of the same file.

A file opened for writing only cannot be mapped. So the kernel need not copy written data to its
own pages first, which costs more than all other steps of a write here. Other programs that have
the file open bring in pages. Then a write returns when no page with older data is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from zarrfs.fs.files.kernel_pages import KernelPages

# Times that a write is done again because a page came in beside it. Pages that are read
# after the first time show it, so a second time is enough but for the strangest of chances.
_TRIES = 16


@dataclass(slots=True, eq=False, repr=False)
class _Paged:
    """A file that is open through the kernel's pages: how often, and how many writes came so."""

    handles: int = 0
    writes: int = 0


class DirectWrites:
    """For each open file who uses the kernel's pages. Loop only."""

    def __init__(self, pages: KernelPages) -> None:
        self._pages = pages
        self._paged: dict[int, _Paged] = {}

    def opened(self, inode: int, *, write_only: bool, always: bool) -> bool:
        """A file is opened. Whether it is to be written past the kernel's pages.

        Not where others have it open: they would lose pages with each write.

        always : even then.
        """
        if always or (write_only and inode not in self._paged):
            return True
        self._paged.setdefault(inode, _Paged()).handles += 1
        return False

    def closed(self, inode: int, *, direct: bool) -> None:
        """A handle is closed; ``direct`` is the result of `opened`."""
        if direct:
            return
        paged = self._paged[inode]
        paged.handles -= 1
        if not paged.handles:
            del self._paged[inode]

    def paged(self, inode: int) -> None:
        """A write through pages is done."""
        if (paged := self._paged.get(inode)) is not None:
            paged.writes += 1

    async def write(self, inode: int, write: Callable[[], Awaitable[int]]) -> int:
        """Await ``write``, which goes past the pages of a file; what it returns.

        A page that was read before, and changed in a mapping, holds old bytes beside the
        new ones. It comes in while pages are dropped, and then it is the other one that
        has to be written once more.
        """
        self._pages.outdated(inode)
        for _ in range(_TRIES):
            paged = self._paged.get(inode)
            writes = paged.writes if paged is not None else 0
            written = await write()
            # Another program may have opened the file meanwhile.
            paged = self._paged.get(inode)
            if paged is None:
                break
            self._pages.drop(inode)
            await self._pages.kernel.settled()
            if paged.writes == writes:
                break
        return written
