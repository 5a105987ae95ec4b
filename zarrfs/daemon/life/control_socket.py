"""Commands to a running mount, over a Unix socket: store changes, drop caches, change the memory.

A read-only mount refuses all writes, so commands cannot come through its files. The socket is in
the abstract namespace: it has no file that a killed daemon would leave behind. ``control`` in
``.zarrfs/config.json`` has its name. Only the user who runs the daemon and root may give commands;
the kernel says who connects.

A connection carries one request and one answer, each a JSON document on a line:
``{"command": "memory", "size": 2147483648}`` and ``{"done": {…}}`` or ``{"error": "…"}``.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from zarrfs.daemon.control import address, peer
from zarrfs.errors import UsageError, ZarrfsError, unexpected

_log = logging.getLogger(__name__)

_REQUEST_BYTES = 4096
_REQUEST_S = 5.0
# Connections that are served at once; others wait in the kernel.
_CONNECTIONS = 8

Request = dict[str, Any]
Perform = Callable[[Request], Awaitable[dict[str, Any]]]


class ControlSocket:
    """The daemon's end.

    name : of the socket, which begins with ``@`` as in /proc/net/unix.
    """

    def __init__(self) -> None:
        # Other users may bind names first, but cannot guess this one.
        self.name = f"@zarrfs-{os.getpid()}-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(address(self.name))
        self._socket.listen(_CONNECTIONS)

    def close(self) -> None:
        self._socket.close()

    async def serve(self, perform: Perform) -> None:
        """Answers requests until it is cancelled. ``perform`` raises ZarrfsError."""
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._socket))
        limiter = trio.CapacityLimiter(_CONNECTIONS)
        async with trio.open_nursery() as nursery:
            while True:
                async with limiter:
                    stream = await listener.accept()
                nursery.start_soon(_answer, stream, perform, limiter)


async def _answer(
    stream: trio.SocketStream, perform: Perform, limiter: trio.CapacityLimiter
) -> None:
    async with limiter, stream:
        try:
            answer = await _answer_to(stream, perform)
        except trio.BrokenResourceError:
            return
        with trio.move_on_after(_REQUEST_S):
            try:
                await stream.send_all(json.dumps(answer).encode() + b"\n")
            except trio.BrokenResourceError:
                return  # the caller is gone


async def _answer_to(stream: trio.SocketStream, perform: Perform) -> dict[str, Any]:
    # Before anything is read: other users could keep all connections busy by their silence.
    caller = peer(stream.socket)
    if caller.uid not in (0, os.geteuid()):
        return {"error": "only root and the user who mounted it can control it"}
    text = b""
    with trio.move_on_after(_REQUEST_S):
        while not text.endswith(b"\n") and len(text) <= _REQUEST_BYTES:
            part = await stream.receive_some(_REQUEST_BYTES)
            if not part:
                break
            text += part
    try:
        request = json.loads(text) if len(text) <= _REQUEST_BYTES else None
    except ValueError:
        request = None
    if not isinstance(request, dict):
        return {"error": "the request is not a JSON object"}
    _log.info("process %d of user %d asks for %s", caller.pid, caller.uid, request.get("command"))
    try:
        return {"done": await perform(request)}
    except ZarrfsError as error:
        return {"error": str(error), "usage": isinstance(error, UsageError)}
    except Exception as error:  # noqa: BLE001 - no reason to end the mount
        _log.exception("a command failed unexpectedly")
        return {"error": unexpected(error)}
