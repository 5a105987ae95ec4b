"""The event loop's part of a mount's life: begin, beat, obey signals, end."""

from __future__ import annotations

import functools
import logging
import math
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import trio

from zarrfs.daemon.life.hooks import Hooks
from zarrfs.daemon.system.service_manager import ServiceManager
from zarrfs.daemon.system.signals import SIGNALS, Signals
from zarrfs.fuse.session import Session
from zarrfs.fuse.watchdog import Watchdog

_log = logging.getLogger(__name__)


# How often the daemon reports its state to a service manager.
_TELL_S = 5.0


class LifecycleConfig(NamedTuple):
    """How long an end may take.

    sync_seconds : programs' mappings are written out for so long after SIGTERM; what is
        left then is lost. The kernel keeps few such pages. Default 60.
    drain_seconds : requests in flight are waited for so long after that; what is left
        then fails. Default 10.
    end_seconds : everything together but the mappings and the storing of changes, after
        which the watchdog ends it. Default 30.
    """

    sync_seconds: float = 60.0
    drain_seconds: float = 10.0
    end_seconds: float = 30.0


async def live(
    session: Session,
    watchdog: Watchdog,
    config: LifecycleConfig,
    signals: Signals,
    manager: ServiceManager,
    begun: trio.Event,
    hooks: Hooks,
) -> None:
    """Serves until the mount is unmounted or a signal ends it.

    signals : holding already, and again when this returns, so that none of them cuts the
        teardown short.
    begun : set when the kernel has begun to talk.
    """
    with trio.open_signal_receiver(*SIGNALS) as received:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            async with trio.open_nursery() as nursery:
                serving = trio.CancelScope()
                ending = _Ending(session, watchdog, config, serving, hooks)
                reloading = _Reloading(hooks.reload)
                obey = functools.partial(_obey_one, ending, reloading, hooks.dump)
                nursery.start_soon(_beat, session, watchdog, ending)
                nursery.start_soon(_obey, signals.kept(), received, obey)
                nursery.start_soon(_announce, begun, manager, hooks, ending)
                nursery.start_soon(reloading.run)
                nursery.start_soon(hooks.take_commands)
                nursery.start_soon(hooks.keep_nursery)
                nursery.start_soon(ending.run)
                with serving:
                    await session.serve()
                nursery.cancel_scope.cancel()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            watchdog.expect_end(config.end_seconds)


class _Ending:
    """The end of a mount, begun once."""

    def __init__(
        self,
        session: Session,
        watchdog: Watchdog,
        config: LifecycleConfig,
        serving: trio.CancelScope,
        hooks: Hooks,
    ) -> None:
        self._session = session
        self._watchdog = watchdog
        self._config = config
        self._serving = serving
        self._hooks = hooks
        self._asked = trio.Event()
        self._syncing = trio.CancelScope()

    @property
    def begun(self) -> bool:
        return self._asked.is_set()

    def disconnected(self) -> None:
        """The kernel has ended the connection, and writes nothing out any more."""
        self._syncing.cancel()
        self._asked.set()

    def ask(self) -> None:
        """Ends the mount: gently when first asked, at once when asked again."""
        if self._asked.is_set():
            self._syncing.cancel()
            self._serving.cancel()
        self._asked.set()

    async def run(self) -> None:
        """Once asked, ends the mount when the requests in flight are answered, within bounds."""
        await self._asked.wait()
        self._hooks.ending()
        await self._write_out()
        self._watchdog.expect_end(self._config.end_seconds)
        self._session.stop()
        await trio.sleep(self._config.drain_seconds)
        _log.warning(
            "requests were not answered within %g s and fail now", self._config.drain_seconds
        )
        self._serving.cancel()

    async def _write_out(self) -> None:
        self._syncing.deadline = trio.current_time() + self._config.sync_seconds
        with self._syncing:
            await self._hooks.sync()
        if self._syncing.cancelled_caught and not self._session.disconnected:
            _log.error("mappings were not written out in time: changes in them may be lost")


async def _beat(session: Session, watchdog: Watchdog, ending: _Ending) -> None:
    while True:
        watchdog.beat()
        if session.disconnected:
            ending.disconnected()
        await trio.sleep(watchdog.interval / 2)


async def _announce(
    begun: trio.Event, manager: ServiceManager, hooks: Hooks, ending: _Ending
) -> None:
    """Reports that the mount is ready, and from then on its state."""
    await begun.wait()
    if not hooks.ready():
        _log.warning("the command that started this mount is gone; ending")
        ending.ask()
        return
    manager.ready(hooks.summary())
    pause = min(_TELL_S, (manager.watchdog_seconds or math.inf) / 3)
    while True:
        manager.alive()
        if not ending.begun:
            manager.set_status(hooks.summary())
        await trio.sleep(pause)


class _Reloading:
    """Reads everything again when asked; once more if asked meanwhile."""

    def __init__(self, reload: Callable[[], Awaitable[None]]) -> None:
        self._reload = reload
        self._asked = trio.Event()

    def ask(self) -> None:
        self._asked.set()

    async def run(self) -> None:
        while True:
            await self._asked.wait()
            self._asked = trio.Event()
            await self._reload()


async def _obey(kept: list[int], received: AsyncIterator[int], obey: Callable[[int], None]) -> None:
    for number in kept:
        obey(number)
    async for number in received:
        obey(number)


def _obey_one(ending: _Ending, reloading: _Reloading, dump: Callable[[], str], number: int) -> None:
    name = signal.Signals(number).name
    if number == signal.SIGUSR1:
        _log.info("state on %s:\n%s", name, dump())
    elif number == signal.SIGHUP:
        _log.info("reading everything again on %s", name)
        reloading.ask()
    else:
        _log.info("ending on %s", name)
        ending.ask()
