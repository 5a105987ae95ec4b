"""The real daemon, whose worker processes crash when they decode.

Usage: crashing_zarrfs.py SOURCE MOUNTPOINT -o …
"""

import os
import signal
import sys

from tests.mount.scripted import mount_scripted
from zarrfs.jobs.worker import Worker


def crash(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def main(source: str, mount_point: str, *arguments: str) -> None:
    def serve(request, launch) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.serve import serve

        Worker.perform = crash
        serve(request, launch)

    mount_scripted(source, mount_point, arguments, serve)


if __name__ == "__main__":
    main(*sys.argv[1:])
