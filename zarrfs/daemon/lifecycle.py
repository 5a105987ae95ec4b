"""The event loop's part of a mount's life: begin, beat, obey signals, drain."""

from __future__ import annotations

import logging
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import trio

from zarrfs.fuse.session import Session
from zarrfs.fuse.watchdog import Watchdog

_log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


@dataclass(frozen=True, slots=True)
class LifecycleConfig:
    """How long an end may take.

    drain_seconds : requests in flight are waited for so long after SIGTERM; what is left
        then fails. Default 10.
    end_seconds : everything together, after which the watchdog ends it. Default 30.
    """

    drain_seconds: float = 10.0
    end_seconds: float = 30.0


async def live(
    session: Session,
    watchdog: Watchdog,
    config: LifecycleConfig,
    *,
    begun: trio.Event,
    ready: Callable[[], bool],
    dump: Callable[[], str],
) -> None:
    """Serves until the mount is unmounted or a signal ends it.

    begun : set when the kernel has begun to talk.
    ready : called soon after; a False ends the mount.
    dump : the state of the daemon, logged on SIGUSR1.

    Call it with `SIGNALS` blocked; they are blocked when it returns, so that none of them
    cuts the teardown short.
    """
    with trio.open_signal_receiver(*SIGNALS) as signals:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            async with trio.open_nursery() as nursery:
                serving = trio.CancelScope()
                ending = _Ending(session, watchdog, config, serving)
                nursery.start_soon(_beat, session, watchdog, ending)
                nursery.start_soon(_obey, signals, ending, dump)
                nursery.start_soon(_announce, begun, ready, ending)
                nursery.start_soon(ending.drain)
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
    ) -> None:
        self._session = session
        self._watchdog = watchdog
        self._config = config
        self._serving = serving
        self._asked = trio.Event()

    def begin(self) -> None:
        """Ends the mount once the requests in flight are answered, within a bound."""
        if not self._asked.is_set():
            self._asked.set()
            self._watchdog.expect_end(self._config.end_seconds)
            self._session.stop()

    def ask(self) -> None:
        """Ends the mount: gently when first asked, at once when asked again."""
        if self._asked.is_set():
            self._serving.cancel()
        self.begin()

    async def drain(self) -> None:
        """Cancels what is still in flight some time after the end was asked for."""
        await self._asked.wait()
        await trio.sleep(self._config.drain_seconds)
        _log.warning(
            "requests were not answered within %g s and fail now", self._config.drain_seconds
        )
        self._serving.cancel()


async def _beat(session: Session, watchdog: Watchdog, ending: _Ending) -> None:
    while True:
        watchdog.beat()
        if session.disconnected:
            ending.begin()
        await trio.sleep(watchdog.interval / 2)


async def _announce(begun: trio.Event, ready: Callable[[], bool], ending: _Ending) -> None:
    await begun.wait()
    if not ready():
        _log.warning("the command that started this mount is gone; ending")
        ending.ask()


async def _obey(signals: AsyncIterator[int], ending: _Ending, dump: Callable[[], str]) -> None:
    async for number in signals:
        name = signal.Signals(number).name
        if number == signal.SIGUSR1:
            _log.info("state on %s:\n%s", name, dump())
        elif number == signal.SIGHUP:
            # Nothing to read again: the options are those of the command line.
            _log.info("%s ignored", name)
        else:
            _log.info("ending on %s", name)
            ending.ask()
