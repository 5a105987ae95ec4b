"""The real daemon, whose store is not late before a file is there, and for ever late then.

Usage: late_zarrfs.py FILE SOURCE MOUNTPOINT -o …
"""

import itertools
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from tests.mount.scripted import mount_scripted
from zarrfs.store import workers
from zarrfs.store.wrappers import retry


def main(file: str, source: str, mount_point: str, *arguments: str) -> None:
    def run(request, ready) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.serve import serve

        hours = itertools.count()
        late = Path(file).exists
        clock = SimpleNamespace(
            monotonic=lambda: 3600.0 * next(hours) if late() else 0.0, time=time.time
        )
        workers.time = retry.time = clock
        serve(request, ready)

    mount_scripted(source, mount_point, arguments, run)


if __name__ == "__main__":
    main(*sys.argv[1:])
