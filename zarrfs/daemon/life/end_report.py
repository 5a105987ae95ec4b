"""Reports of a daemon's end to the command that waits for it.

The exit status of a daemon is known to init alone. So a writable mount has an anonymous
file; ``.zarrfs/config.json`` has its path below /proc. A process that opens it while the
daemon lives can read it afterwards. It leaves nothing behind.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

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
        self.tell(End())

    def tell(self, end: End) -> None:
        # One call, so that a reader sees one state; a shorter one is padded.
        said = json.dumps(end._asdict()).encode()
        os.pwrite(self._file, said.ljust(os.fstat(self._file).st_size), 0)

    def close(self) -> None:
        os.close(self._file)


class EndReader:
    """The side of the command; raises `OSError` where the daemon cannot be looked into."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> End:
        said = json.loads(os.pread(self._file, _MAX_SIZE, 0))
        return End(said["storing"], said["stored"], tuple(said["reasons"]), said["left"])

    def close(self) -> None:
        os.close(self._file)
