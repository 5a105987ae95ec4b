"""A process that forks worker processes for the daemon, which has threads by then.

The daemon forks the nursery before its first thread. The nursery does nothing until the daemon
asks. So no event in the daemon or in the workers affects the state in which a new worker starts.

Workers are children of the daemon: it inherits them (PR_SET_CHILD_SUBREAPER), because the process
between the nursery and a worker ends at once. Each worker then has the kernel kill it when the
daemon ends, and asks for no work before that is set up.

The nursery outlives the daemon for a moment; no worker does. It stores nothing, but it can do a
step that a killed daemon cannot: see `Nursery.at_death`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from struct import Struct
from typing import Any

from zarrfs.jobs.channel import Channel
from zarrfs.jobs.patience import WorkerPatience
from zarrfs.jobs.worker import WorkerConfig, work

log = logging.getLogger(__name__)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Signals from a terminal, a service manager or a user; only the daemon ends its processes.
_IGNORED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_PID = Struct("<i")
_SPAWN, _AT_DEATH = b"s", b"d"
_LARGEST_WORDS, _MOST_FILES = 1 << 16, 8
_END_TIMEOUT_S = 5.0
# Seconds that the other threads of a daemon may take to end after its first thread.
_LAST_BREATH_S = 2.0


class Nursery:
    """The daemon's end of the connection. Used by one thread at a time."""

    def __init__(
        self,
        config: WorkerConfig | None,
        free: Callable[[str, Sequence[int]], None],
        patience: float,
    ) -> None:
        """Forks, so the process must have no other thread. Raises OSError.

        config : of workers; None: there will be no workers.
        free : called in the nursery if the daemon was killed and cannot end; see `at_death`.
        patience : seconds that the nursery may take for an answer without any processor time.
        """
        daemon = os.getpid()
        # Objects that exist now stay in memory that the processes share until one writes to it.
        gc.freeze()
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if not self.pid:
            _in_child(lambda: _Process(theirs, daemon, config, free).run())
        theirs.close()
        self._patience = WorkerPatience(self.pid, patience)
        self._connection.settimeout(self._patience.look_after)

    def spawn(self) -> tuple[int, socket.socket]:
        """Start a worker; returns its process id and the connection to it. Raises OSError."""
        # Only for this moment: the daemon waits for workers, but not for processes that they leave.
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        try:
            self._connection.send(_SPAWN)
            message, descriptors = self._reply()
        finally:
            _prctl(_PR_SET_CHILD_SUBREAPER, 0)
        if not descriptors:
            raise OSError(message.decode() or "the process that forks workers has ended")
        return _PID.unpack(message)[0], socket.socket(fileno=descriptors[0])

    def _reply(self) -> tuple[bytes, list[int]]:
        self._patience.begin()
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(
                    self._connection, 256, 1, socket.MSG_CMSG_CLOEXEC
                )
            except TimeoutError:
                if not self._patience.lasts():
                    # The nursery must not answer the next request with this answer.
                    os.kill(self.pid, signal.SIGKILL)
                    raise
            else:
                return message, descriptors

    def at_death(self, words: str, files: Sequence[int]) -> None:
        """Have ``free(words, files)`` called if the daemon is killed and cannot end by itself.

        A thread of the daemon may wait in the kernel for an answer of the daemon itself, which even
        SIGKILL does not end.

        words : empty: nothing is to be done.
        files : descriptors, at most so many as `free` needs.
        """
        with contextlib.suppress(OSError):  # the nursery has been killed
            socket.send_fds(self._connection, [_AT_DEATH + words.encode()], list(files))

    def close(self) -> None:
        """End the nursery."""
        self._connection.close()
        if wait(self.pid, time.monotonic() + _END_TIMEOUT_S) is None:
            os.kill(self.pid, signal.SIGKILL)


class _Process:
    """The nursery process."""

    def __init__(
        self,
        connection: socket.socket,
        daemon: int,
        config: WorkerConfig | None,
        free: Callable[[str, Sequence[int]], None],
    ) -> None:
        self._connection = connection
        self._daemon = daemon
        self._config = config
        self._file = None if config is None else config.memory.file
        self._free = free
        self._words = ""
        self._files: list[int] = []

    def run(self) -> None:
        _call_it("zarrfs-nursery")
        # The kernel reports the end of the daemon's first thread, which may not be the last one.
        died, wake = socket.socketpair()
        wake.setblocking(False)
        signal.signal(signal.SIGRTMIN, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGRTMIN)
        if os.getppid() != self._daemon:
            return
        kept = [self._connection.fileno(), died.fileno(), wake.fileno(), self._file]
        _alone_with(*kept)
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

    def _obey(self) -> bool:
        """Handle one request of the daemon; False if the daemon has closed the connection."""
        message, files, _, _ = socket.recv_fds(
            self._connection, _LARGEST_WORDS, _MOST_FILES, socket.MSG_CMSG_CLOEXEC
        )
        if message[:1] == _AT_DEATH:
            for file in self._files:
                os.close(file)
            self._words, self._files = message[1:].decode(), files
        elif message == _SPAWN:
            try:
                pid, connection = self._spawn()
            except OSError as error:
                self._connection.send(str(error).encode()[:256] or b"?")
            else:
                with connection:
                    socket.send_fds(self._connection, [_PID.pack(pid)], [connection.fileno()])
        return bool(message)

    def _spawn(self) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair()
        between = os.fork()
        if not between:
            _in_child(lambda: self._leave_a_worker(theirs))
        os.waitpid(between, 0)
        theirs.close()
        # The worker sends its process id when it is the daemon's child.
        hello = ours.recv(_PID.size)
        if not hello:
            ours.close()
            raise OSError("a new worker process has ended at once")
        return _PID.unpack(hello)[0], ours

    def _leave_a_worker(self, connection: socket.socket) -> None:
        between = os.getpid()
        if os.fork():
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGRTMIN, signal.SIG_IGN)
        _alone_with(connection.fileno(), self._file)
        while os.getppid() == between:
            time.sleep(0.0005)
        # If the daemon ends before this call, the next line notices it; if later, the kernel does.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._daemon or self._config is None:
            return
        _call_it("zarrfs-worker")
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            # If memory runs out, the daemon can do without a worker, but not the reverse.
            file.write("500")
        gc.enable()
        connection.send(_PID.pack(os.getpid()))
        work(Channel(connection), self._config)

    def _daemon_dies(self) -> bool:
        """Whether the daemon's first thread has ended; any process may have sent the signal."""
        try:
            with open(f"/proc/{self._daemon}/stat", encoding="ascii", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def _free_if_hung(self) -> None:
        """Wait for the daemon to end, which closes its end of the connection; if stuck, free it."""
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


def wait(pid: int, give_up: float) -> int | None:
    """The exit status of a child; None if it has not ended by ``give_up`` (`time.monotonic`)."""
    while True:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0  # the parent of the daemon has the kernel reap its children
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > give_up:
            # A child that hangs in the kernel ends late even after a signal.
            return None
        time.sleep(0.002)


def _in_child(run: Callable[[], Any]) -> None:
    """Run, then exit without the parent's frames and exit handlers."""
    status = 1
    try:
        run()
        status = 0
    finally:
        os._exit(status)


def _call_it(name: str) -> None:
    """Set the name of this process in ps(1) and top(1)."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write(name)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _alone_with(*descriptors: int | None) -> None:
    """Close all inherited descriptors except these."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    kept = sorted(number for number in descriptors if number is not None)
    assert kept[0] > 2, "a standard stream was closed"
    for before, after in pairwise([2, *kept, os.sysconf("SC_OPEN_MAX")]):
        os.closerange(before + 1, after)
    os.chdir("/")
