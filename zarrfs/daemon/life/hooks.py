"""The parts of the daemon that the event loop calls during the life of a mount."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import trio

from zarrfs.daemon.hung_mount import guard
from zarrfs.daemon.life.control_socket import ControlSocket, Request
from zarrfs.daemon.life.drain import ChangesNotStored
from zarrfs.daemon.system.background import Launch
from zarrfs.daemon.system.logs import stacks
from zarrfs.daemon.system.service_manager import ServiceManager
from zarrfs.errors import MountError, UsageError, ZarrfsError
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.connection import TuningConfig
from zarrfs.fuse.mapped_pages import write_out
from zarrfs.fuse.notify import NotificationThread
from zarrfs.fuse.session import Session
from zarrfs.jobs.nursery import Nursery
from zarrfs.memory.default_memory import LEAST_MEMORY
from zarrfs.store.wrappers.overlay import OverlayStore

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

# Seconds between the ends of two nurseries, if something ends each of them.
_NEXT_NURSERY_S = 1.0
# Objects of an overlay that an answer names.
_MOST_SHOWN = 1000


def dump(filesystem: FileSystem) -> str:
    """The state of the daemon, for the log."""
    return f"{stacks()}\n{filesystem.describe_state()}"


class Hooks(NamedTuple):
    """The parts that it takes.

    nursery : None where there is none.
    overlay : the store, where the mount keeps changes in an overlay.
    source : as it is shown.
    end_seconds : the most that an end may take before changes are stored.
    """

    filesystem: FileSystem
    session: Session
    notifications: NotificationThread
    manager: ServiceManager
    launch: Launch
    control: ControlSocket
    nursery: Nursery | None
    overlay: OverlayStore | None
    source: str
    tuning: TuningConfig
    writable: bool
    end_seconds: float

    def ready(self) -> bool:
        """The kernel has begun to talk. Whether anyone still wants the mount."""
        connection = self.session.connection
        connection.tune(self.tuning)
        # Present objects stay, so the collector need not scan them again.
        gc.freeze()
        gc.enable()
        _log.info("mounted %s at %s", self.source, connection.path)
        return self.launch.ready()

    def dump(self) -> str:
        return dump(self.filesystem)

    def summary(self) -> str:
        """How it goes, in one line."""
        return self.filesystem.summary()

    async def reload(self) -> None:
        """Reads the metadata again and relies on nothing that is cached. Raises nothing."""
        self.manager.reloading("reading everything again")
        try:
            await self.filesystem.reload()
            _log.info("read everything again")
        except ZarrfsError as error:
            _log.error("not everything could be read again: %s", error)
        except Exception:  # noqa: BLE001 - no reason to end the mount
            _log.exception("reading everything again failed unexpectedly")
        self.manager.ready(self.summary())

    def ending(self) -> None:
        """The end begins."""
        self.manager.stopping("waiting for what is under way")
        self.manager.extend(self.end_seconds)

    async def sync(self) -> None:
        """Has the kernel write out mapped pages, where some can have changed."""
        if self.writable:
            filesystem = self.filesystem
            await write_out(
                self.session.connection, self.notifications, lambda: filesystem.writable_inodes
            )

    async def keep_nursery(self) -> None:
        """Replace the nursery whenever it is killed, until this is cancelled."""
        while self.nursery is not None:
            try:
                await _ended(self.nursery.pid)
                self.nursery.replace(guard())
            except OSError as error:
                _log.error("the nursery cannot be replaced: %s", error)
                return
            _log.error("the nursery has ended and is replaced; dead workers no longer are")
            await trio.sleep(_NEXT_NURSERY_S)

    async def take_commands(self) -> None:
        """Performs what `zarrfs control` asks for, until it is cancelled."""
        await self.control.serve(self._perform)

    async def _perform(self, request: Request) -> dict[str, Any]:
        filesystem = self.filesystem
        command = request.get("command")
        budget, used = filesystem.memory
        if command == "flush":
            return {"stored_bytes": await self._flush()}
        if command == "drop":
            await filesystem.drop_caches()
            return {"freed_bytes": max(0, used - filesystem.memory[1])}
        if command == "memory" and isinstance(size := request.get("size"), int):
            if size < LEAST_MEMORY:
                raise UsageError(f"{size} bytes are less than the {LEAST_MEMORY >> 20}M needed")
            await filesystem.set_memory(size)
            return {"memory": size, "before": budget}
        if command in ("diff", "commit"):
            return await self._overlaid(command, budget)
        raise UsageError(f"unknown command {command!r}")

    async def _flush(self) -> int:
        filesystem = self.filesystem
        before = filesystem.dirty_bytes
        # Pages that programs changed in mappings are the kernel's until it hands them over.
        await self.sync()
        stored = max(before, filesystem.dirty_bytes)
        if errors := await filesystem.store_changes():
            reasons = "; ".join(dict.fromkeys(map(str, errors)))
            raise ChangesNotStored(f"not all changes could be stored: {reasons}")
        return stored

    async def _overlaid(self, command: str, memory: int) -> dict[str, Any]:
        """List what the overlay holds, or store it in the source."""
        overlay = self.overlay
        if overlay is None:
            raise MountError("the mount has no overlay: its changes are in the source")
        await self._flush()
        if command == "commit":
            done = await _in_thread(partial(overlay.commit, memory))
            first = dict(islice(done.kept.items(), _MOST_SHOWN))
            return {
                "stored": done.stored,
                "removed": done.removed,
                "kept": first,
                "kept_objects": len(done.kept),
            }
        changes = await _in_thread(lambda: list(overlay.changes()))
        return {
            "changes": changes[:_MOST_SHOWN],
            "objects": len(changes),
            "bytes": sum(size or 0 for _, size in changes),
        }


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Await ``work``, which the end of the mount leaves behind: it may be cut short anywhere."""
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)


async def _ended(pid: int) -> None:
    """Return when a child has ended. Raises OSError."""
    file = os.pidfd_open(pid)
    try:
        await trio.lowlevel.wait_readable(file)
    finally:
        os.close(file)
