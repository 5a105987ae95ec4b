"""The real daemon, which waits for a silent worker process for less long.

Usage: impatient_zarrfs.py SECONDS SOURCE MOUNTPOINT -o …
"""

import itertools
import sys

from zarrfs.daemon.mount import mount
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.request import MountRequest


def main(seconds: str, source: str, mount_point: str, *arguments: str) -> None:
    options = [text for flag, text in itertools.pairwise(arguments) if flag == "-o"]

    def impatient(request, ready) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.serve import ServeConfig, serve

        serve(request, ready, ServeConfig(worker_patience=float(seconds)))

    mount(
        MountRequest(source=source, mount_point=mount_point, options=parse_options(list(options))),
        impatient,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
