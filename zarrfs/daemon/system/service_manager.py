"""Reports the state to systemd, over the socket that it names.

https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import MutableMapping

_log = logging.getLogger(__name__)

# How long what must arrive may wait for a service manager that is busy.
_TIMEOUT_S = 5.0
_MAX_STATUS = 500
_MICROSECONDS = 1_000_000


class ServiceManager:
    """The service manager that started this process, or nobody. Raises nothing.

    socket_path : a path, or ``@`` and a name in the abstract namespace; None: nobody.
    watchdog_seconds : how often it wants to hear `alive`; None: never.
    """

    def __init__(
        self, socket_path: str | None = None, watchdog_seconds: float | None = None
    ) -> None:
        self.watchdog_seconds = watchdog_seconds
        self._status: str | None = None
        self._socket: socket.socket | None = None
        if socket_path is None:
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.connect(socket_path.replace("@", "\0", 1))
        except OSError as error:
            _log.warning("cannot notify the service manager: %s: %s", socket_path, error.strerror)
            self.close()

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> ServiceManager:
        """Takes what is meant for this process alone out of ``environment``."""
        path = environment.pop("NOTIFY_SOCKET", None)
        interval = environment.pop("WATCHDOG_USEC", "")
        pid = environment.pop("WATCHDOG_PID", "")
        watched = interval.isdecimal() and int(interval) > 0 and pid in ("", str(os.getpid()))
        return cls(
            path if path and path[0] in "/@" else None,
            int(interval) / _MICROSECONDS if watched else None,
        )

    def ready(self, status: str) -> None:
        """The mount answers; also after `reloading`."""
        self._send(f"READY=1\nSTATUS={self._remember(status)}", wait=True)

    def reloading(self, status: str) -> None:
        """Until the next `ready`."""
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        text = f"RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS={self._remember(status)}"
        self._send(text, wait=True)

    def stopping(self, status: str) -> None:
        self._send(f"STOPPING=1\nSTATUS={self._remember(status)}", wait=True)

    def set_status(self, status: str) -> None:
        """Sets the status line, if it has changed."""
        if self._socket is not None and status != self._status:
            self._send(f"STATUS={self._remember(status)}")

    def extend(self, seconds: float) -> None:
        """A start or an end that takes long goes on; more will be heard within ``seconds``."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * _MICROSECONDS)}")

    def alive(self) -> None:
        """The event loop runs, or changes are being stored."""
        if self.watchdog_seconds is not None:
            self._send("WATCHDOG=1")

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _remember(self, status: str) -> str:
        self._status = status
        return " ".join(status.split())[:_MAX_STATUS]

    def _send(self, text: str, *, wait: bool = False) -> None:
        if self._socket is None:
            return
        # The event loop waits for nobody but a few times in a life.
        self._socket.settimeout(_TIMEOUT_S if wait else 0)
        try:
            self._socket.send(text.encode(errors="backslashreplace"))
        except OSError as error:
            _log.debug("cannot notify the service manager: %s", error)
