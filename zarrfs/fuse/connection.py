"""The kernel's side of one mount: its limits, and the way to break it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

from zarrfs.fuse.mount_table import FILE_SYSTEM_TYPE, topmost
from zarrfs.fuse.unmount import force

_log = logging.getLogger(__name__)

_CONNECTIONS = Path("/sys/fs/fuse/connections")
_DEVICES = Path("/sys/class/bdi")


class TuningConfig(NamedTuple):
    """Limits of the kernel, set where that is permitted.

    max_background : read-ahead requests in flight at once. The kernel's own default, 12,
        starves parallel readers of a slow store.
    congestion_threshold : from how many of them on the kernel reads less ahead.
    read_ahead_kb : how far ahead of a sequential reader the kernel asks, in KiB. Needs
        root.
    """

    max_background: int = 64
    congestion_threshold: int = 48
    read_ahead_kb: int = 1024


class Connection(NamedTuple):
    """One mount, found in the mount table; nothing here touches the mount itself."""

    path: str
    device: tuple[int, int]

    @classmethod
    def find(cls, path: str) -> Connection | None:
        """The zarrfs mount that is seen at ``path``, an absolute path without links."""
        entry = topmost(path)
        if entry is None or entry.type != FILE_SYSTEM_TYPE:
            return None
        return cls(entry.path, entry.device)

    @property
    def mounted(self) -> bool:
        """Whether this mount is what is seen at its path now."""
        entry = topmost(self.path)
        return entry is not None and entry.device == self.device

    def abort(self) -> bool:
        """Breaks the connection: every request, waiting or to come, fails.

        The only thing that frees a process which waits for a daemon that does not answer.
        Returns whether it was done.
        """
        try:
            (self._directory / "abort").write_text("1")
        except OSError as error:
            # fusectl is not mounted everywhere, and not writable in most containers.
            _log.info("cannot abort through %s: %s", self._directory, error.strerror)
        else:
            return True
        return self.mounted and force(self.path)

    def tune(self, config: TuningConfig) -> None:
        """Sets what is permitted; call after the kernel's first request was answered.

        Until then the kernel overwrites these numbers with its own.
        """
        device = ":".join(map(str, self.device))
        for path, value in (
            (self._directory / "max_background", config.max_background),
            (self._directory / "congestion_threshold", config.congestion_threshold),
            (_DEVICES / device / "read_ahead_kb", config.read_ahead_kb),
        ):
            try:
                path.write_text(f"{value}\n")
            except OSError as error:
                _log.info("%s stays as it is: %s", path, error.strerror)

    @property
    def _directory(self) -> Path:
        return _CONNECTIONS / str(self.device[1])
