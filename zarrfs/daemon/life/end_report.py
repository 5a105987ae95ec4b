"""Reports of a daemon's end to the command that waits for it.

The exit status of a daemon is known to init alone. So a writable mount has an anonymous
file; ``.zarrfs/config.json`` has its path below /proc. A process that opens it while the
daemon lives can read it afterwards. It leaves nothing behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

_MOST_REASONS = 5
_MAX_SIZE = 1 << 16


class End(NamedTuple):
    """How far a daemon is.

    storing : the mount has ended, and changes are being stored.
    stored : all changes are stored.
    reasons : why not, one line each.
    left : while ``storing``, how many bytes of chunks are to be stored.
    """

    storing: bool = False
    stored: bool = False
    reasons: tuple[str, ...] = ()
    left: int = 0


class EndReport:
    """The daemon's side."""

    def __init__(self) -> None:
        self._file = os.memfd_create("zarrfs-end")
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        self._write(End())

    def storing(self, left: int) -> None:
        self._write(End(storing=True, left=left))

    def stored(self) -> None:
        self._write(End(stored=True))

    def failed(self, reasons: Sequence[str]) -> None:
        shown = list(reasons[:_MOST_REASONS])
        if len(reasons) > len(shown):
            shown.append(f"and {len(reasons) - len(shown)} more")
        self._write(End(reasons=tuple(shown)))

    def close(self) -> None:
        os.close(self._file)

    def _write(self, end: End) -> None:
        said = end._asdict()
        # One call, so that a reader sees one state; a shorter one is padded.
        os.pwrite(self._file, json.dumps(said).encode().ljust(os.fstat(self._file).st_size), 0)


class EndReader:
    """The side of the command; raises `OSError` where the daemon cannot be looked into."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> End:
        said = json.loads(os.pread(self._file, _MAX_SIZE, 0))
        return End(said["storing"], said["stored"], tuple(said["reasons"]), said["left"])

    def close(self) -> None:
        os.close(self._file)
