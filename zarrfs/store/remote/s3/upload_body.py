"""Buffers as the body of an upload, without joining them."""

from __future__ import annotations

import asyncio
import io
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from zarrfs.store.base import Data

_T = TypeVar("_T")


def slices(parts: Sequence[Data], length: int) -> list[list[memoryview]]:
    """The concatenation of ``parts``, cut into pieces of ``length`` bytes without copying."""
    pieces: list[list[memoryview]] = []
    room = 0
    for part in parts:
        view = memoryview(part)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        while len(view):
            if not room:
                pieces.append([])
                room = length
            pieces[-1].append(view[:room])
            taken = len(pieces[-1][-1])
            view, room = view[taken:], room - taken
    return pieces


class UploadBody(io.RawIOBase):
    """A file of the concatenation of ``views``; each read of it counts as progress.

    views : of bytes (format "B").
    """

    def __init__(self, views: Sequence[memoryview], progress: Callable[[], None]) -> None:
        self._views = [view for view in views if len(view)]
        self._starts = list(accumulate(map(len, self._views), initial=0))
        self._at = 0
        self._progress = progress
        self._progress_at = time.monotonic()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._at, self._starts[-1])[whence]
        self._at = min(max(base + offset, 0), self._starts[-1])
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._progress_at = time.monotonic()
        self._progress()
        if self._at >= self._starts[-1]:
            return 0
        index = bisect_right(self._starts, self._at) - 1
        start = self._at - self._starts[index]
        data = self._views[index][start : start + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    async def sent(self, request: Callable[[], Awaitable[_T]], timeout_s: float) -> _T:
        """The reply to what ``request`` sends, which reads this body.

        Raises `TimeoutError` if the body was not read and no reply came for ``timeout_s`` seconds.
        """
        task = asyncio.ensure_future(request())
        try:
            while not task.done():
                left = self._progress_at + timeout_s - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                await asyncio.wait({task}, timeout=left)
            self._progress()
            return task.result()
        finally:
            task.cancel()
