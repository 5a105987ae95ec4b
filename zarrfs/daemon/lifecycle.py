"""The event loop's part of a mount's life: begin, beat, obey signals, end."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import trio

from zarrfs.daemon.signals import SIGNALS, Signals
from zarrfs.fuse.session import Session
from zarrfs.fuse.watchdog import Watchdog

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LifecycleConfig:
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
    *,
    begun: trio.Event,
    ready: Callable[[], bool],
    dump: Callable[[], str],
    sync: Callable[[], Awaitable[None]] | None,
) -> None:
    """Serves until the mount is unmounted or a signal ends it.

    signals : holding already, and again when this returns, so that none of them cuts the
        teardown short.
    begun : set when the kernel has begun to talk.
    ready : called soon after; a False ends the mount.
    dump : the state of the daemon, logged on SIGUSR1.
    sync : has the kernel write out mapped pages; None where none can have changed.
    """
    with trio.open_signal_receiver(*SIGNALS) as received:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            async with trio.open_nursery() as nursery:
                serving = trio.CancelScope()
                ending = _Ending(session, watchdog, config, serving, sync)
                nursery.start_soon(_beat, session, watchdog, ending)
                nursery.start_soon(_obey, signals.kept(), received, ending, dump)
                nursery.start_soon(_announce, begun, ready, ending)
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
        sync: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._session = session
        self._watchdog = watchdog
        self._config = config
        self._serving = serving
        self._sync = sync
        self._asked = trio.Event()
        self._syncing = trio.CancelScope()

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
        if self._sync is not None:
            await self._write_out(self._sync)
        self._watchdog.expect_end(self._config.end_seconds)
        self._session.stop()
        await trio.sleep(self._config.drain_seconds)
        _log.warning(
            "requests were not answered within %g s and fail now", self._config.drain_seconds
        )
        self._serving.cancel()

    async def _write_out(self, sync: Callable[[], Awaitable[None]]) -> None:
        self._syncing.deadline = trio.current_time() + self._config.sync_seconds
        with self._syncing:
            await sync()
        if self._syncing.cancelled_caught and not self._session.disconnected:
            _log.error("mappings were not written out in time: changes in them may be lost")


async def _beat(session: Session, watchdog: Watchdog, ending: _Ending) -> None:
    while True:
        watchdog.beat()
        if session.disconnected:
            ending.disconnected()
        await trio.sleep(watchdog.interval / 2)


async def _announce(begun: trio.Event, ready: Callable[[], bool], ending: _Ending) -> None:
    await begun.wait()
    if not ready():
        _log.warning("the command that started this mount is gone; ending")
        ending.ask()


async def _obey(
    kept: list[int], received: AsyncIterator[int], ending: _Ending, dump: Callable[[], str]
) -> None:
    for number in kept:
        _obey_one(number, ending, dump)
    async for number in received:
        _obey_one(number, ending, dump)


def _obey_one(number: int, ending: _Ending, dump: Callable[[], str]) -> None:
    name = signal.Signals(number).name
    if number == signal.SIGUSR1:
        _log.info("state on %s:\n%s", name, dump())
    elif number == signal.SIGHUP:
        # Nothing to read again: the options are those of the command line.
        _log.info("%s ignored", name)
    else:
        _log.info("ending on %s", name)
        ending.ask()
