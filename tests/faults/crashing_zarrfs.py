"""The real daemon, whose worker processes crash when they decode.

Usage: crashing_zarrfs.py SOURCE MOUNTPOINT -o …
"""

import itertools
import os
import signal
import sys

from zarrfs.daemon.mount import mount
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.request import MountRequest
from zarrfs.jobs.worker import Worker


def crash(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def main(source: str, mount_point: str, *arguments: str) -> None:
    options = [text for flag, text in itertools.pairwise(arguments) if flag == "-o"]

    def serve(request, launch) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.serve import serve

        Worker.perform = crash
        serve(request, launch)

    mount(
        MountRequest(source=source, mount_point=mount_point, options=parse_options(list(options))),
        serve,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
