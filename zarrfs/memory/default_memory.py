"""How much memory this process may take, and the default memory budget."""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 1024 << 20
LEAST_MEMORY = 16 << 20

# Files in which a control group gives the memory limit of this process.
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def default_memory() -> int:
    """Bytes: a quarter of what this process may take, at least 16 MiB and at most 1 GiB."""
    return max(min(all_memory() // 4, _MOST), LEAST_MEMORY)


def all_memory() -> int:
    """Bytes of memory that the machine and its control group allow this process."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CGROUP_LIMITS:
        try:
            total = min(total, int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue  # no such control group, or "max"
    return total
