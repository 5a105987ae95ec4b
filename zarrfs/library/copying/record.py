"""The record of a copy that is not finished, in the destination itself.

It says what is copied and how far it is, so that the same command goes on after an interruption;
and who copies, so that a second copy to the same destination is refused. It is removed at the end.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from zarrfs.errors import AlreadyExists, StoreConflict, ZarrfsError
from zarrfs.library.engine import Finished
from zarrfs.store.base import Generation, Store
from zarrfs.store.open import synced

RECORD = ".zarrfs_copy.json"
_LARGEST = 64 << 20
# A living copy writes its record this often; another host trusts one that is not much older.
_EVERY_S = 5.0
_STALE_S = 60.0


class CopyRecord:
    """The record of this copy, for one thread.

    done : for each array, which of its boxes are stored.
    resumed : whether an earlier copy began it.
    removing : whether what was at the destination is still being removed.
    """

    def __init__(
        self, store: Store, identity: Mapping[str, Any], *, overwrite: bool, removing: bool
    ) -> None:
        """Take the destination over.

        overwrite : whether to begin anew where another copy was not finished.

        Raises AlreadyExists if another copy has it, StoreError."""
        self._store = store
        self._identity = dict(identity)
        self._owner = {"host": socket.gethostname(), "process": _process(), "id": uuid.uuid4().hex}
        self.done: defaultdict[str, Finished] = defaultdict(Finished)
        self.removing = removing
        self.resumed = False
        expected: Generation | None = None
        if (blob := store.get(RECORD, limit=_LARGEST)) is not None:
            self._take(bytes(blob.data), overwrite=overwrite)
            expected = blob.info.generation
        try:
            self._state = self._put(expected)
        except StoreConflict as error:
            raise AlreadyExists(f"{store.url}: another copy to it has just begun") from error

    def _take(self, data: bytes, *, overwrite: bool) -> None:
        where = self._store.url
        try:
            found = json.loads(data)
            owner, identity = found["owner"], found["identity"]
            done = {
                str(path): Finished(int(first), map(int, others))
                for path, (first, others) in found["done"].items()
            }
            alive = _is_alive(owner, float(found["time"]))
            removing = bool(found["removing"])
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{RECORD} cannot be read: remove it, and what was copied, to begin anew"
            raise AlreadyExists(f"{where}: {reason}") from error
        if alive:
            who = f"process {owner['process'][0]} on {owner['host']}"
            raise AlreadyExists(f"{where}: another copy to it is running ({who})")
        if identity != self._identity and overwrite:
            self.removing = True
            return
        if identity != self._identity:
            differ = sorted(k for k in self._identity if self._identity[k] != identity.get(k))
            reason = f"holds an unfinished copy with another {', '.join(differ)}"
            raise AlreadyExists(f"{where}: {reason}: --overwrite begins anew")
        self.done.update(done)
        self.removing, self.resumed = removing, True

    def write_if_due(self) -> None:
        """As `write`, every few seconds, which also shows others that this copy is alive."""
        if time.monotonic() - self._written >= _EVERY_S:
            self.write()

    def write(self) -> None:
        """Raises AlreadyExists if another copy has taken the destination over, StoreError."""
        # So that the boxes that it calls stored are.
        synced(self._store)
        try:
            self._state = self._put(self._state)
        except StoreConflict as error:
            reason = f"{self._store.url}: another copy to it has taken over"
            raise AlreadyExists(reason) from error

    def let_go(self) -> None:
        """This copy has stopped; the next one need not wait to be sure of that."""
        self._owner["process"] = [0, 0]
        # Otherwise the next copy finds that nobody has written it for a while.
        with suppress(ZarrfsError):
            self.write()

    def remove(self) -> None:
        self._store.delete(RECORD, expected=self._state)

    def _put(self, expected: Generation | None) -> Generation:
        document = {
            "owner": self._owner,
            "time": time.time(),
            "identity": self._identity,
            "removing": self.removing,
            "done": {path: (one.first, sorted(one.others)) for path, one in self.done.items()},
        }
        data = json.dumps(document).encode()
        self._written = time.monotonic()
        return self._store.put(RECORD, [data], expected=expected).generation


def _process() -> list[int]:
    """Number and start of this process, by which it differs from later ones of that number."""
    return [os.getpid(), _started(os.getpid())]


def _started(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[19])


def _is_alive(owner: Mapping[str, Any], written: float) -> bool:
    pid, started = owner["process"]
    if not pid:
        return False
    if owner["host"] == socket.gethostname() and os.path.isdir("/proc/self"):
        return bool(started) and _started(pid) == started
    return time.time() - written < _STALE_S
