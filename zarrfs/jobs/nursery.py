"""A process that forks worker processes for the daemon, which has threads by then.

The daemon forks the nursery before its first thread. The nursery does nothing until the daemon
asks. So no event in the daemon or in the workers affects the state in which a new worker starts.

Workers are children of the daemon: it inherits them (PR_SET_CHILD_SUBREAPER), because the process
between the nursery and a worker ends at once. Each worker then has the kernel kill it when the
daemon ends, and asks for no work before that is set up.

The nursery outlives the daemon for a moment; no worker does. It is also the daemon's `Guard`: see
`Nursery.at_death`. A nursery that was killed is replaced by a process that is that alone.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from zarrfs.jobs.channel import Channel, WorkerPatience
from zarrfs.jobs.guard import AT_DEATH, PR_SET_PDEATHSIG, Free, Guard, alone_with, call_it, prctl
from zarrfs.jobs.worker import WorkerConfig, work

_PR_SET_CHILD_SUBREAPER = 36
_PID = Struct("<i")
_SPAWN = b"s"
_END_TIMEOUT_S = 5.0


class _Connected(NamedTuple):
    """The daemon's end of one nursery.

    patience : with its answers.
    """

    pid: int
    socket: socket.socket
    patience: WorkerPatience


class Nursery:
    """The daemon's end of the connection.

    `spawn` is used by one thread at a time, all else by the first thread of the daemon alone.
    """

    def __init__(self, config: WorkerConfig | None, free: Free, patience: float) -> None:
        """Forks, so the process must have no other thread. Raises OSError.

        config : of workers; None: there will be no workers.
        free : called in the nursery if the daemon was killed and cannot end; see `at_death`.
        patience : seconds that the nursery may take for an answer without any processor time.
        """
        daemon = os.getpid()
        # Objects that exist now stay in memory that the processes share until one writes to it.
        gc.freeze()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if not pid:
            process = _Process(theirs, daemon, config, free)
            _in_child(process.run)
        theirs.close()
        self._request: tuple[str, Sequence[int]] = "", ()
        self._patience = patience
        self._connect(pid, ours)

    def _connect(self, pid: int, connection: socket.socket) -> None:
        patience = WorkerPatience(pid, self._patience)
        connection.settimeout(patience.look_after)
        self._process = _Connected(pid, connection, patience)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def spawn(self) -> tuple[int, socket.socket]:
        """Start a worker; returns its process id and the connection to it. Raises OSError."""
        process = self._process
        # Only for this moment: the daemon waits for workers, but not for processes that they leave.
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        try:
            process.socket.send(_SPAWN)
            message, descriptors = _reply(process)
        finally:
            prctl(_PR_SET_CHILD_SUBREAPER, 0)
        if not descriptors:
            raise OSError(message.decode() or "the process that forks workers has ended")
        return _PID.unpack(message)[0], socket.socket(fileno=descriptors[0])

    def at_death(self, words: str, files: Sequence[int]) -> None:
        """Have ``free(words, files)`` called if the daemon is killed and cannot end by itself.

        A thread of the daemon may wait in the kernel for an answer of the daemon itself, which even
        SIGKILL does not end.

        words : empty: nothing is to be done.
        files : descriptors, at most so many as `free` needs; open until the next call.
        """
        self._request = words, files
        with contextlib.suppress(OSError):  # the nursery has been killed
            socket.send_fds(self._process.socket, [AT_DEATH + words.encode()], list(files))

    def replace(self, command: Sequence[str]) -> None:
        """Start another process if the nursery has ended. It does not fork workers. Raises OSError.

        command : of a program that calls `Guard.run`. Its last arguments are the descriptor of a
            connection and the process id of the daemon.
        """
        wait(self.pid, time.monotonic())
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            theirs.set_inheritable(True)
            arguments = [*command, str(theirs.fileno()), str(os.getpid())]
            self._connect(os.posix_spawn(command[0], arguments, os.environ), ours)
        self.at_death(*self._request)

    def close(self) -> None:
        """End the nursery."""
        self._process.socket.close()
        if wait(self.pid, time.monotonic() + _END_TIMEOUT_S) is None:
            os.kill(self.pid, signal.SIGKILL)


def _reply(process: _Connected) -> tuple[bytes, list[int]]:
    process.patience.begin()
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(
                process.socket, 256, 1, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError:
            if not process.patience.lasts():
                # The nursery must not answer the next request with this answer.
                os.kill(process.pid, signal.SIGKILL)
                raise
        else:
            return message, descriptors


class _Process(Guard):
    """The nursery process."""

    def __init__(
        self,
        connection: socket.socket,
        daemon: int,
        config: WorkerConfig | None,
        free: Free,
    ) -> None:
        super().__init__(connection, daemon, free)
        self._config = config

    def answer(self, _message: bytes) -> None:
        """Fork a worker."""
        try:
            pid, connection = self._spawn()
        except OSError as error:
            self._connection.send(str(error).encode()[:256] or b"?")
        else:
            with connection:
                socket.send_fds(self._connection, [_PID.pack(pid)], [connection.fileno()])

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
        alone_with(connection.fileno())
        while os.getppid() == between:
            time.sleep(0.0005)
        # If the daemon ends before this call, the next line notices it; if later, the kernel does.
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self._daemon or self._config is None:
            return
        call_it("zarrfs-worker")
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            # If memory runs out, the daemon can do without a worker, but not the reverse.
            file.write("500")
        gc.enable()
        connection.send(_PID.pack(os.getpid()))
        work(Channel(connection), self._config)


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
