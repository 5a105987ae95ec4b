"""Messages between the daemon and one worker process."""

from __future__ import annotations

import socket
from struct import Struct

from zarrfs.jobs.patience import WorkerPatience

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
        """Close the connection. The other side ends at its next read."""
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
