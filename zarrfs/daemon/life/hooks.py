"""What a mount's life asks of the rest of the daemon, on the event loop."""

from __future__ import annotations

import gc
import logging
from typing import NamedTuple

from zarrfs.daemon.system.background import Launch
from zarrfs.daemon.system.logs import stacks
from zarrfs.daemon.system.service_manager import ServiceManager
from zarrfs.errors import ZarrfsError
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.connection import TuningConfig
from zarrfs.fuse.mapped_pages import write_out
from zarrfs.fuse.notify import NotificationThread
from zarrfs.fuse.session import Session

_log = logging.getLogger(__name__)


def dump(filesystem: FileSystem) -> str:
    """The state of the daemon, for the log."""
    return f"{stacks()}\n{filesystem.describe_state()}"


class Hooks(NamedTuple):
    """The parts that it takes.

    source : as it is shown.
    end_seconds : the most that an end may take before changes are stored.
    """

    filesystem: FileSystem
    session: Session
    notifications: NotificationThread
    manager: ServiceManager
    launch: Launch
    source: str
    tuning: TuningConfig
    writable: bool
    end_seconds: float

    def ready(self) -> bool:
        """The kernel has begun to talk. Whether anyone still wants the mount."""
        connection = self.session.connection
        connection.tune(self.tuning)
        # What is there now stays, and need not be looked through again and again.
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
