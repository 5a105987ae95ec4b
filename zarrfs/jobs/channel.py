"""Messages between the daemon and one worker process, and how long the daemon waits for them."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from struct import Struct

DEFAULT_PATIENCE_S = 20.0
# Several looks: a daemon that was frozen with its worker must not give it up at the first one.
_LOOKS = 4


class WorkerPatience:
    """Lasts as long as the worker process uses any processor time.

    A job may take long: a slow disk, a large block, a busy machine. A worker that performs a job
    runs now and then, if only to make another system call. A worker that was stopped, or that hangs
    in a single system call, does not run at all.

    seconds : without any processor time, after which the patience ends.

    Used by one thread at a time.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self.look_after = seconds / _LOOKS
        # The clock that clock_getcpuclockid(3) returns for the process.
        self._clock = (~pid << 3) | 2
        self._left = _LOOKS
        self._used = -1

    def begin(self) -> None:
        """A job begins: the worker has its full time again."""
        self._left = _LOOKS
        self._used = -1

    def lasts(self) -> bool:
        """Whether to wait for another ``look_after`` seconds."""
        try:
            used = time.clock_gettime_ns(self._clock)
        except OSError:
            return False  # the process is gone
        if used != self._used:
            self._used = used
            # The first look cannot show whether the worker has run since the job began.
            self._left = _LOOKS
        self._left -= 1
        return self._left > 0


_LENGTH = Struct("<Q")
_LARGEST_MESSAGE = 64 << 20


class Channel:
    """One end of a connection. Used by one thread at a time.

    patience : how long to wait for the other side; None: for ever.
    """

    def __init__(self, connection: socket.socket, patience: WorkerPatience | None = None) -> None:
        self._connection = connection
        self._patience = patience
        if patience is not None:
            connection.settimeout(patience.look_after)

    def send(self, message: bytes) -> None:
        """Send a message. Raises OSError; TimeoutError if the other side reads nothing."""
        view = memoryview(_LENGTH.pack(len(message)) + message)
        self._begin()
        while view:
            try:
                view = view[self._connection.send(view) :]
            except TimeoutError as error:
                self._go_on(error)

    def receive(self) -> bytes | None:
        """The next message; None if the other side has ended.

        Raises OSError; TimeoutError if the other side sends nothing.
        """
        self._begin()
        head = self._read(_LENGTH.size)
        if head is None:
            return None
        (size,) = _LENGTH.unpack(head)
        return self._read(size) if size <= _LARGEST_MESSAGE else None

    def close(self) -> None:
        """Close the connection. The other side ends at its next read, and so does a read here."""
        with suppress(OSError):  # it has ended before
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _read(self, size: int) -> bytes | None:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            try:
                count = self._connection.recv_into(view)
            except TimeoutError as error:
                self._go_on(error)
                continue
            if not count:
                return None
            view = view[count:]
        return bytes(data)

    def _begin(self) -> None:
        if self._patience is not None:
            self._patience.begin()

    def _go_on(self, error: TimeoutError) -> None:
        """Raise the error, unless the patience lasts."""
        if self._patience is None or not self._patience.lasts():
            raise error
