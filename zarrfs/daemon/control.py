"""Commands to a running mount, from outside; `zarrfs.daemon.life.control_socket` answers them."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from zarrfs.daemon.status import Status
from zarrfs.errors import MountError, UsageError

_ANSWER_BYTES = 1 << 20


class Peer(NamedTuple):
    """The process at the other end of a Unix socket, as the kernel knows it."""

    pid: int
    uid: int


def control(mount_point: str, request: Mapping[str, object]) -> dict[str, Any]:
    """Has the daemon of a mount perform ``request``; its answer. Blocks until it is done.

    request : ``command`` is ``flush``, ``drop`` or ``memory``, the last with ``size`` in bytes.

    Raises `MountError` if nothing is mounted there, the daemon refuses, or the command fails.
    """
    status = Status.of(mount_point)
    name = status.config.get("control")
    if name is None:
        raise MountError(f"{status.mountpoint} is of an earlier version, which takes no commands")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(address(name))
        except OSError as error:
            raise MountError(
                f"{status.mountpoint} takes no commands from here: its daemon is in another "
                f"network namespace, or ends ({error.strerror})"
            ) from error
        try:
            answer = _ask(connection, request)
        except OSError as error:
            raise MountError(f"{status.mountpoint} does not answer: {error.strerror}") from error
    if answer is None:
        raise MountError(f"{status.mountpoint} ended before it answered")
    if "error" in answer:
        raise (UsageError if answer.get("usage") else MountError)(answer["error"])
    done: dict[str, Any] = answer["done"]
    return done


def _ask(connection: socket.socket, request: Mapping[str, object]) -> dict[str, Any] | None:
    # A daemon that refuses this user answers and closes without reading.
    with suppress(BrokenPipeError):
        connection.sendall(json.dumps(request).encode() + b"\n")
    with connection.makefile("rb") as answers:
        text = answers.readline(_ANSWER_BYTES)
    return json.loads(text) if text.endswith(b"\n") else None


def peer(connection: Any) -> Peer:
    """``connection`` : a socket of the standard library or of trio."""
    form = struct.Struct("3i")
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size)
    pid, uid, _ = form.unpack(credentials)
    return Peer(pid, uid)


def address(name: str) -> str:
    """The address of a socket in the abstract namespace, whose ``name`` begins with ``@``."""
    return f"\0{name[1:]}"
