"""The real daemon, which waits for a silent worker process for less long.

Usage: impatient_zarrfs.py SECONDS SOURCE MOUNTPOINT -o …
"""

import sys

from tests.mount.scripted import mount_scripted


def main(seconds: str, source: str, mount_point: str, *arguments: str) -> None:
    def impatient(request, ready) -> None:
        # As in the real daemon, after the fork.
        from zarrfs.daemon.life.serve import ServeConfig, serve

        serve(request, ready, ServeConfig(worker_patience=float(seconds)))

    mount_scripted(source, mount_point, arguments, impatient)


if __name__ == "__main__":
    main(*sys.argv[1:])
