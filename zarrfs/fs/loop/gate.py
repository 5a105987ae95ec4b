"""Keeping writers of an array out while its size changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trio


class Gate:
    """Many may be inside, or one alone. Loop only.

    A task that finds it open and enters must not await in between.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._closed = False
        self._changed: trio.Event | None = None

    @property
    def closed(self) -> bool:
        """Whether a task is alone inside, or waits for that."""
        return self._closed

    async def wait_open(self) -> None:
        """Returns when nobody is alone inside; without a checkpoint where that is so."""
        while self._closed:
            await self._change()

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
                await self._change()
            yield
        finally:
            self._closed = False
            self._tell()

    async def _change(self) -> None:
        # Imported here: it takes a third of the start of a command that shows what a mount would.
        from trio import Event  # noqa: PLC0415

        if self._changed is None:
            self._changed = Event()
        await self._changed.wait()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
