"""A process that does what a killed daemon cannot do itself.

It outlives the daemon for a moment, and stores nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

PR_SET_PDEATHSIG = 1
AT_DEATH = b"d"
_LARGEST_WORDS, _MOST_FILES = 1 << 16, 8
# Signals from a terminal, a service manager or a user; only the daemon ends its processes.
_IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
# Seconds that the other threads of a daemon may take to end after its first thread.
_LAST_BREATH_S = 2.0

Free = Callable[[str, Sequence[int]], None]


class Guard:
    """The guard process: a child of the daemon's first thread."""

    def __init__(self, connection: socket.socket, daemon: int, free: Free) -> None:
        """
        connection : to the daemon.
        daemon : its process id.
        free : called with what the daemon has said last if it was killed and cannot end.
        """
        self._connection = connection
        self._daemon = daemon
        self._free = free
        self._words = ""
        self._files: list[int] = []

    def run(self) -> None:
        """Until the daemon ends; descriptors of others are closed."""
        call_it("zarrfs-nursery")
        # The kernel reports the end of the daemon's first thread, which may not be the last one.
        died, wake = socket.socketpair()
        wake.setblocking(False)
        signal.signal(signal.SIGRTMIN, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        prctl(PR_SET_PDEATHSIG, signal.SIGRTMIN)
        alone_with(self._connection.fileno(), died.fileno(), wake.fileno())
        if os.getppid() != self._daemon:
            self._free_if_hung()
            return
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.register(died, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if died.fileno() in ready:
                died.recv(64)
                if self._daemon_dies():
                    self._free_if_hung()
                    return
            if self._connection.fileno() in ready and not self._obey():
                return

    def answer(self, _message: bytes) -> None:
        """Answer another request than to remember what is to be freed."""
        self._connection.send(b"no workers can be forked any more")

    def _obey(self) -> bool:
        """Handle one request of the daemon; False if the daemon has closed the connection."""
        message, files, _, _ = socket.recv_fds(
            self._connection, _LARGEST_WORDS, _MOST_FILES, socket.MSG_CMSG_CLOEXEC
        )
        if message[:1] == AT_DEATH:
            for file in self._files:
                os.close(file)
            self._words, self._files = message[1:].decode(), files
        elif message:
            self.answer(message)
        return bool(message)

    def _daemon_dies(self) -> bool:
        """Whether the daemon's first thread has ended; any process may have sent the signal."""
        try:
            with open(f"/proc/{self._daemon}/stat", encoding="ascii", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def _free_if_hung(self) -> None:
        """Wait for the daemon to end, which closes its end of the connection; else free it."""
        give_up = time.monotonic() + _LAST_BREATH_S
        while (left := give_up - time.monotonic()) > 0:
            self._connection.settimeout(left)
            try:
                if not self._obey():
                    return
            except TimeoutError:
                break
            except OSError:
                return
        if self._words:
            self._free(self._words, self._files)


def call_it(name: str) -> None:
    """Set the name of this process in ps(1) and top(1)."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def prctl(option: int, value: int) -> None:
    """Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def alone_with(*descriptors: int) -> None:
    """Close all inherited descriptors except these."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    kept = sorted(descriptors)
    assert kept[0] > 2, "a standard stream was closed"
    for before, after in pairwise([2, *kept, os.sysconf("SC_OPEN_MAX")]):
        os.closerange(before + 1, after)
    os.chdir("/")
