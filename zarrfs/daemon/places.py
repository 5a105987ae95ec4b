"""The directories of journals, and of references to the chunks of files of other formats."""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from zarrfs.errors import UsageError


def journal_place(source: str, chosen: str | None) -> str:
    """The directory for changes of a source: its own and the user's, in one that users may share.

    chosen : what the directory lies in; None: ``/var/lib/zarrfs`` for root, else the user's
        state directory (XDG Base Directory Specification).

    Raises UsageError for a user whose state directory is not known.
    """
    name = blake2b(os.fsencode(source), digest_size=12).hexdigest()
    if chosen is not None:
        return str(Path(chosen).absolute() / f"{name}-{os.geteuid()}")
    if os.geteuid() == 0:
        base = Path("/var/lib/zarrfs/journal")
    else:
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        if state.startswith("~"):
            raise UsageError("option journal: the user has no home directory: name one")
        base = Path(state).absolute() / "zarrfs" / "journal"
    return str(base / name)


def references_directory() -> str | None:
    """``/var/cache/zarrfs`` for root, else in the user's cache (XDG Base Directory Specification).

    A relative XDG_CACHE_HOME is ignored, as the specification demands. None: the user has no home.
    """
    if os.geteuid() == 0 and not os.environ.get("XDG_CACHE_HOME"):
        return "/var/cache/zarrfs/references"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
    return None if base.startswith("~") else str(Path(base, "zarrfs/references"))
