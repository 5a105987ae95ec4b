"""The directory that keeps references to the chunks of files of other formats."""

from __future__ import annotations

import os
from pathlib import Path


def references_directory() -> str:
    """``/var/cache/zarrfs`` for root, else in the user's cache (XDG Base Directory Specification).

    A relative XDG_CACHE_HOME is ignored, as the specification demands.
    """
    if os.geteuid() == 0 and not os.environ.get("XDG_CACHE_HOME"):
        return "/var/cache/zarrfs/references"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return str(base / "zarrfs" / "references")
