"""A trio loop in a thread, for tests that are not async."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

T = TypeVar("T")

_SECONDS = 60


class Loop:
    """Runs coroutines of any threads beside each other; one that hangs fails its test."""

    def __init__(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=trio.run, args=(self._main, ready), name="test loop", daemon=True
        )
        self._thread.start()
        assert ready.wait(_SECONDS)

    async def _main(self, ready: threading.Event) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._over = trio.Event()
        ready.set()
        await self._over.wait()

    def run(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        return trio.from_thread.run(self._bounded, function, args, trio_token=self._token)

    async def _bounded(self, function: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> T:
        with trio.fail_after(_SECONDS):
            return await function(*args)

    def close(self) -> None:
        self._token.run_sync_soon(self._over.set)
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()
