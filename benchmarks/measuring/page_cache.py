"""Making things cold."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_DROP = Path("/proc/sys/vm/drop_caches")


def drop_all(store: Path) -> None:
    """The kernel forgets what it has of all files, or at least of those in ``store``.

    But for ``dd``, which is a reader's own program.
    """
    os.sync()
    try:
        _DROP.write_text("3")
    except PermissionError:
        for directory, _, names in os.walk(store):
            for name in names:
                drop_file(Path(directory, name))
    subprocess.run(["dd", "if=/dev/null", "of=/dev/null", "status=none"], check=True)


def drop_file(path: Path) -> None:
    """The kernel forgets the pages of one file, which nobody may have mapped."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
