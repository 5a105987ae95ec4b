"""Where the changes of a source are kept that cannot be stored when its mount ends."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple


class JournalPlace(NamedTuple):
    """
    directory : of the source's own, and of the user's, who may share what it lies in.
    before : where earlier versions kept changes, which users did share; None: in the same.
    """

    directory: str
    before: str | None


def journal_place(source: str, chosen: str | None) -> JournalPlace:
    """Where to keep changes of a source.

    chosen : what the directory lies in; None: ``/var/lib/zarrfs`` for root, else the user's
        state directory (XDG Base Directory Specification).
    """
    name = blake2b(os.fsencode(source), digest_size=12).hexdigest()
    if chosen is not None:
        base = Path(chosen).absolute()
        return JournalPlace(str(base / f"{name}-{os.geteuid()}"), str(base / name))
    if os.geteuid() == 0:
        base = Path("/var/lib/zarrfs/journal")
    else:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        base = Path(state).absolute() / "zarrfs" / "journal"
    return JournalPlace(str(base / name), None)
