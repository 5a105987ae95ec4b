"""The event loop's part of a mount's life: begin, beat, obey signals, end."""

from __future__ import annotations

import gc
import logging
import math
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

import trio

from zarrfs.daemon.hung_mount import guard
from zarrfs.daemon.life.commands import Commands
from zarrfs.daemon.life.control_socket import ControlSocket
from zarrfs.daemon.life.drain import dump
from zarrfs.daemon.system.background import Ready
from zarrfs.daemon.system.service_manager import ServiceManager
from zarrfs.daemon.system.signals import SIGNALS, Signals
from zarrfs.errors import ZarrfsError
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.connection import TuningConfig
from zarrfs.fuse.mapped_pages import write_out
from zarrfs.fuse.notify import NotificationThread
from zarrfs.fuse.session import Session
from zarrfs.fuse.watchdog import Watchdog
from zarrfs.jobs.nursery import Nursery
from zarrfs.store.wrappers.overlay import OverlayStore

_log = logging.getLogger(__name__)

# How often the daemon reports its state to a service manager.
_TELL_S = 5.0
# Seconds between the ends of two nurseries, if something ends each of them.
_NEXT_NURSERY_S = 1.0


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


@dataclass(eq=False)
class Lifecycle:
    """The parts of a mount that its event loop uses; call `live` once.

    signals : holding already, and again when `live` returns, so that none of them cuts the
        teardown short.
    ready : see `Ready`.
    begun : set when the kernel has begun to talk.
    nursery : None where there is none.
    overlay : the store, where the mount keeps changes in an overlay.
    source : as it is shown.
    """

    config: LifecycleConfig
    filesystem: FileSystem
    session: Session
    watchdog: Watchdog
    signals: Signals
    notifications: NotificationThread
    manager: ServiceManager
    ready: Ready
    begun: trio.Event
    control: ControlSocket
    nursery: Nursery | None
    overlay: OverlayStore | None
    source: str
    tuning: TuningConfig
    writable: bool
    _ending: trio.Event = field(default_factory=trio.Event)
    _reloading: trio.Event = field(default_factory=trio.Event)
    _serving: trio.CancelScope = field(default_factory=trio.CancelScope)
    _syncing: trio.CancelScope = field(default_factory=trio.CancelScope)

    async def live(self) -> None:
        """Serves until the mount is unmounted or a signal ends it."""
        with trio.open_signal_receiver(*SIGNALS) as received:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._beat)
                    nursery.start_soon(self._obey, received)
                    nursery.start_soon(self._announce)
                    nursery.start_soon(self._reload_when_asked)
                    commands = Commands(self.filesystem, self.overlay, self._sync)
                    nursery.start_soon(self.control.serve, commands.perform)
                    nursery.start_soon(self._keep_nursery)
                    nursery.start_soon(self._end_when_asked)
                    with self._serving:
                        await self.session.serve()
                    nursery.cancel_scope.cancel()
            finally:
                signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
                self.watchdog.expect_end(self.config.end_seconds)

    async def _beat(self) -> None:
        while True:
            self.watchdog.beat()
            if self.session.disconnected:
                # The kernel writes nothing out any more.
                self._syncing.cancel()
                self._ending.set()
            await trio.sleep(self.watchdog.interval / 2)

    async def _announce(self) -> None:
        """Reports that the mount is ready, and from then on its state."""
        await self.begun.wait()
        self.session.connection.tune(self.tuning)
        # Present objects stay, so the collector need not scan them again.
        gc.freeze()
        gc.enable()
        _log.info("mounted %s at %s", self.source, self.session.connection.path)
        if not self.ready():
            _log.warning("the command that started this mount is gone; ending")
            self._end()
            return
        self.manager.ready(self.filesystem.summary())
        pause = min(_TELL_S, (self.manager.watchdog_seconds or math.inf) / 3)
        while True:
            self.manager.alive()
            if not self._ending.is_set():
                self.manager.set_status(self.filesystem.summary())
            await trio.sleep(pause)

    async def _obey(self, received: AsyncIterator[int]) -> None:
        for number in self.signals.kept():
            self._obey_one(number)
        async for number in received:
            self._obey_one(number)

    def _obey_one(self, number: int) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGUSR1:
            _log.info("state on %s:\n%s", name, dump(self.filesystem))
        elif number == signal.SIGHUP:
            _log.info("reading everything again on %s", name)
            self._reloading.set()
        else:
            _log.info("ending on %s", name)
            self._end()

    async def _reload_when_asked(self) -> None:
        """Reads everything again; once more if asked meanwhile."""
        while True:
            await self._reloading.wait()
            self._reloading = trio.Event()
            self.manager.reloading("reading everything again")
            try:
                await self.filesystem.reload()
                _log.info("read everything again")
            except ZarrfsError as error:
                _log.error("not everything could be read again: %s", error)
            except Exception:  # noqa: BLE001 - no reason to end the mount
                _log.exception("reading everything again failed unexpectedly")
            self.manager.ready(self.filesystem.summary())

    async def _keep_nursery(self) -> None:
        """Replaces the nursery whenever it is killed."""
        while self.nursery is not None:
            try:
                await _ended(self.nursery.pid)
                self.nursery.replace(guard())
            except OSError as error:
                _log.error("the nursery cannot be replaced: %s", error)
                return
            _log.error("the nursery has ended and is replaced; dead workers no longer are")
            await trio.sleep(_NEXT_NURSERY_S)

    def _end(self) -> None:
        """Ends the mount: gently when first asked, at once when asked again."""
        if self._ending.is_set():
            self._syncing.cancel()
            self._serving.cancel()
        self._ending.set()

    async def _end_when_asked(self) -> None:
        """Ends the mount when the requests in flight are answered, within bounds."""
        await self._ending.wait()
        config = self.config
        self.manager.stopping("waiting for what is under way")
        self.manager.extend(config.sync_seconds + config.end_seconds)
        self._syncing.deadline = trio.current_time() + config.sync_seconds
        with self._syncing:
            await self._sync()
        if self._syncing.cancelled_caught and not self.session.disconnected:
            _log.error("mappings were not written out in time: changes in them may be lost")
        self.watchdog.expect_end(config.end_seconds)
        self.session.stop()
        await trio.sleep(config.drain_seconds)
        _log.warning("requests were not answered within %g s and fail now", config.drain_seconds)
        self._serving.cancel()

    async def _sync(self) -> None:
        """Has the kernel write out mapped pages, where some can have changed."""
        if self.writable:
            filesystem = self.filesystem
            await write_out(
                self.session.connection, self.notifications, lambda: filesystem.writable_inodes
            )


async def _ended(pid: int) -> None:
    """Returns when a child has ended. Raises OSError."""
    file = os.pidfd_open(pid)
    try:
        await trio.lowlevel.wait_readable(file)
    finally:
        os.close(file)
