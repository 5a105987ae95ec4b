"""The real daemon, which dies of SIGKILL at one of its operations on disk.

Usage: killed_zarrfs.py AT COUNT SOURCE MOUNTPOINT -o …

AT : which operation, counted from 1 after the mount is ready; 0: none.
COUNT : a file that has one byte for each operation so far.
"""

import os
import sys

from tests.mount.scripted import mount_scripted


def main(at: str, count: str, source: str, mount_point: str, *arguments: str) -> None:
    def killed(request, launch) -> None:
        # As in the real daemon, after the fork.
        from tests.faults.killed.sweep import Operations
        from zarrfs.daemon.life.serve import serve

        operations = Operations("kill", int(at))
        file = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        write, following = os.write, operations.next

        def counted(name: str) -> bool:
            write(file, b".")
            return following(name)

        operations.next = counted  # type: ignore[method-assign]
        operations.watch_system()
        serve(request, launch)

    mount_scripted(source, mount_point, arguments, killed)


if __name__ == "__main__":
    main(*sys.argv[1:])
