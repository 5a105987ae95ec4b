"""Sends requests to the decoding processes.

A process is started when it is first needed, and is used again. Each request has a deadline. After
the deadline its process is killed, and the next request starts another one.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any, TypeAlias

from zarrfs.errors import DecodeError
from zarrfs.isolation.child import REPLY, REQUEST
from zarrfs.isolation.interpreter import command

Buffer: TypeAlias = bytes | bytearray | memoryview

_BYTES_PER_S = 4 << 20  # slower than any decoder, even on a busy machine
_LONGEST_REASON = 1000


class IsolatedDecoder:
    """Processes that decode with the function ``decode`` of ``module``.

    patience : seconds that any request may take, in addition to the time for its bytes.

    Thread-safe. Each request has a process for itself, and there are at most as many processes as
    processors.

    Shared state: ``_idle``, under ``_lock``.
    """

    def __init__(self, module: str, patience: float = 30.0) -> None:
        self._module = module
        self._patience = patience
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []

    def decode(
        self,
        parameters: Mapping[str, Any],
        data: Buffer,
        *,
        size: int,
        memory: int,
        exact: bool = True,
        seconds: float | None = None,
    ) -> bytes:
        """The ``size`` bytes that ``data`` decode to.

        memory : bytes that the process may take beyond those that it has.
        exact : whether any other number of bytes is an error; otherwise ``size`` is the most.
        seconds : that it may take; None: ``patience``, and the time for all bytes.

        Raises DecodeError, also if the process crashes or does not answer in time.
        """
        text = json.dumps(parameters).encode()
        if seconds is None:
            seconds = self._patience + (len(data) + size) / _BYTES_PER_S
        deadline = time.monotonic() + seconds
        with self._slots:
            process = self._take()
            try:
                process.send(
                    REQUEST.pack(len(text), len(data), memory, size, exact) + text, deadline
                )
                process.send(data, deadline)
                failed, length = REPLY.unpack(process.receive(REPLY.size, deadline))
                most = _LONGEST_REASON if failed else size
                if length > most or (exact and not failed and length < size):
                    raise _BrokenError("answered with something else")
                answer = process.receive(length, deadline)
            except (_BrokenError, OSError) as error:
                raise DecodeError(f"the process that decodes it {process.end(error)}") from error
            except BaseException:
                process.end(None)
                raise
            with self._lock:
                self._idle.append(process)
        if failed:
            raise DecodeError(answer.decode(errors="replace"))
        return answer

    def close(self) -> None:
        """End all idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.end(None)

    def _take(self) -> _Process:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                # After a fork, the processes of the parent do not belong to the child.
                if process.owner == os.getpid():
                    return process
                process.end(None)
        try:
            return _Process(self._module)
        except OSError as error:
            raise DecodeError(f"no process to decode it can be started: {error}") from error


class _BrokenError(Exception):
    """The reason why a process cannot be used again."""


class _Process:
    """One process, with a socket for its input and output."""

    def __init__(self, module: str) -> None:
        """Raises OSError."""
        self.owner = os.getpid()
        with ExitStack() as ours, ExitStack() as theirs:
            alive, kept = os.pipe()
            theirs.callback(os.close, alive)
            ours.callback(os.close, kept)
            self._socket, other = socket.socketpair()
            theirs.callback(other.close)
            ours.callback(self._socket.close)
            # In a session of its own, so that it gets no signals of the terminal.
            self._popen = subprocess.Popen(
                command("zarrfs.isolation.child", module, str(alive)),
                stdin=other.fileno(),
                stdout=other.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(alive,),
            )
            # If it cannot be started, they are closed here.
            self._ends = ours.pop_all()

    def send(self, data: Buffer, deadline: float) -> None:
        """Raises OSError."""
        self._until(deadline).sendall(data)

    def receive(self, size: int, deadline: float) -> bytes:
        """Raises _BrokenError and OSError."""
        data = bytearray(size)
        left = memoryview(data)
        while left:
            count = self._until(deadline).recv_into(left)
            if not count:
                raise _BrokenError("ended")
            left = left[count:]
        return bytes(data)

    def _until(self, deadline: float) -> socket.socket:
        # A timeout of 0 would not wait, but raise another error.
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        return self._socket

    def end(self, error: BaseException | None) -> str:
        """Kill the process; returns why it died or was killed."""
        status = None
        late = isinstance(error, TimeoutError)
        if self.owner == os.getpid():
            if not late and (isinstance(error, OSError) or str(error) == "ended"):
                # It has closed its end, and is about to end.
                with suppress(subprocess.TimeoutExpired):
                    status = self._popen.wait(1)
            self._popen.kill()
            self._popen.wait()
        self._ends.close()
        if status is not None and status < 0:
            return f"crashed (signal {-status})"
        if late:
            return "took too long and was ended"
        return str(error) if isinstance(error, _BrokenError) else "has gone"


@cache
def isolated(module: str) -> IsolatedDecoder:
    """The decoder by ``module``, shared by all arrays."""
    decoder = IsolatedDecoder(module)
    atexit.register(decoder.close)
    return decoder
