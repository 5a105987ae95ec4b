"""Freeing a mount whose daemon was killed and cannot end.

A thread of it may wait in the kernel for an answer that the daemon itself was to give, and not
even SIGKILL ends that. As long as it waits, the connection to the kernel stays open, and
programs that use the mount wait, too.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

from zarrfs.errors import MountError
from zarrfs.fuse.connection import Connection
from zarrfs.fuse.unmount import unmount
from zarrfs.isolation.interpreter import command
from zarrfs.jobs.guard import Guard


def serialized(connection: Connection) -> str:
    """The first argument of `free_connection`; the other is `Connection.files`."""
    return json.dumps(connection[:3])


def free_connection(words: str, files: Sequence[int]) -> None:
    """Break the connection, and where that is not permitted, take its name away.

    In a process other than the daemon.
    """
    path, (major, minor), mount = json.loads(words)
    connection = Connection(path, (major, minor), mount, tuple(files))
    if not connection.abort() and connection.mounted:
        with suppress(MountError):
            unmount(path, lazy=True)


def guard() -> list[str]:
    """The command line of a process that frees the connection, as `Nursery.replace` takes it."""
    return command(__name__)


def main() -> None:
    """Guard a daemon: the arguments are a descriptor and its process id."""
    connection, daemon = map(int, sys.argv[1:])
    Guard(socket.socket(fileno=connection), daemon, free_connection).run()
