"""The kernel's side of one mount: its limits, and the way to break it.

The kernel gives the number of a connection to the next mount as soon as this one is unmounted,
although the daemon has `/dev/fuse` open still. So nothing is done by number: the files of the
connection are opened when it is made, and reach no other one later.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
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
        starves parallel readers of a slow store. From three quarters on it reads less ahead.
    read_ahead_kb : how far ahead of a sequential reader the kernel asks, in KiB. Needs
        root.
    """

    max_background: int = 64
    read_ahead_kb: int = 1024


class Connection(NamedTuple):
    """One mount, found in the mount table; nothing here touches the mount itself."""

    path: str
    device: tuple[int, int]
    mount: int
    files: tuple[int, ...] = ()
    """Descriptors of ``abort`` and ``waiting``; none where they cannot be opened.

    The second has nothing to read once the connection is gone.
    """

    @classmethod
    def find(cls, path: str) -> Connection | None:
        """The zarrfs mount that is seen at ``path``, an absolute path without links."""
        entry = topmost(path)
        if entry is None or entry.type != FILE_SYSTEM_TYPE:
            return None
        return cls(entry.path, entry.device, entry.number)

    def held(self) -> Connection:
        """The same with its files open; the caller closes it.

        To be called while the mount is certainly there, as it is before it serves.
        """
        files: list[int] = []
        try:
            for name, flags in (("abort", os.O_WRONLY), ("waiting", os.O_RDONLY)):
                files.append(os.open(self._directory / name, flags | os.O_CLOEXEC))
        except OSError as error:
            for file in files:
                os.close(file)
            # fusectl is not mounted everywhere, and not writable in most containers.
            _log.info(
                "%s: cannot be opened, so the mount can be freed by its path only: %s",
                error.filename,
                error.strerror,
            )
            return self
        return self._replace(files=tuple(files))

    @property
    def mounted(self) -> bool:
        """Whether this mount is what is seen at its path now."""
        entry = topmost(self.path)
        if entry is None or (entry.device, entry.number) != (self.device, self.mount):
            return False
        # Another mount may have the same numbers if this one is gone.
        return not self.files or _says_anything(self.files[1])

    def abort(self) -> bool:
        """Breaks the connection: every request, waiting or to come, fails.

        The only thing that frees a process which waits for a daemon that does not answer.
        Returns whether it was done, or there is no such connection any more.
        """
        if self.files:
            with suppress(OSError):
                os.write(self.files[0], b"1")
                return True
        return self.mounted and force(self.path)

    def close(self) -> None:
        """Closes its files."""
        for file in self.files:
            os.close(file)

    def tune(self, config: TuningConfig) -> None:
        """Sets what is permitted; call after the kernel's first request was answered.

        Until then the kernel overwrites these numbers with its own.
        """
        if not self.mounted:
            return
        device = ":".join(map(str, self.device))
        for path, value in (
            (self._directory / "max_background", config.max_background),
            (self._directory / "congestion_threshold", max(config.max_background * 3 // 4, 1)),
            (_DEVICES / device / "read_ahead_kb", config.read_ahead_kb),
        ):
            try:
                path.write_text(f"{value}\n")
            except OSError as error:
                _log.info("%s stays as it is: %s", path, error.strerror)

    @property
    def _directory(self) -> Path:
        return _CONNECTIONS / str(self.device[1])


def _says_anything(file: int) -> bool:
    """Whether there is anything to read in a file that can be read once only."""
    try:
        again = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return bool(os.read(again, 1))
    except OSError:
        return False
    finally:
        os.close(again)
