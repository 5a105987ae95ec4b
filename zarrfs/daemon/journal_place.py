"""Where the changes of a source are kept that cannot be stored when its mount ends."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path


def journal_directory(source: str, chosen: str | None) -> str:
    """A directory of the source's own.

    chosen : what it lies in; None: ``/var/lib/zarrfs`` for root, else the user's state
        directory (XDG Base Directory Specification).
    """
    if chosen is not None:
        base = Path(chosen)
    elif os.geteuid() == 0:
        base = Path("/var/lib/zarrfs/journal")
    else:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        base = Path(state) / "zarrfs" / "journal"
    return str(base.absolute() / blake2b(os.fsencode(source), digest_size=12).hexdigest())
