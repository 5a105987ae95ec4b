"""Keeping writers of an array out while its size changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio


class Gate:
    """Many may be inside, or one alone. Loop only.

    A task that finds it open and enters must not await in between.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._closed = False
        self._changed = trio.Event()

    @property
    def closed(self) -> bool:
        """Whether a task is alone inside, or waits for that."""
        return self._closed

    async def wait_open(self) -> None:
        """Returns when nobody is alone inside; without a checkpoint where that is so."""
        while self._closed:
            await self._changed.wait()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Be inside with others; the gate must be open."""
        assert not self._closed
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            self._tell()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let nobody in any more, wait until all have gone, and be alone."""
        await self.wait_open()
        self._closed = True
        try:
            while self._inside:
                await self._changed.wait()
            yield
        finally:
            self._closed = False
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
