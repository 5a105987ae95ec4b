"""Processes that decode beside the daemon, each with an interpreter of its own.

Codecs and system calls release the interpreter's lock, but each of them takes it again,
and where chunks are small, threads wait for each other more than they decode.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import signal
import socket
import time
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock
from typing import Any, NamedTuple

from zarrfs.jobs.patience import DEFAULT_PATIENCE_S, WorkerPatience
from zarrfs.jobs.worker import Channel, WorkerConfig, work
from zarrfs.memory.shared_memory import SharedMemory
from zarrfs.store.wrappers.timed import StoreTimes

log = logging.getLogger(__name__)

_END_TIMEOUT_S = 5.0
_PR_SET_PDEATHSIG = 1
# A terminal's, a service manager's and a user's; only the daemon ends its workers.
_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class _Process(NamedTuple):
    pid: int
    channel: Channel


class WorkerPool:
    """``count`` processes. To be made before the first thread, because it forks.

    memory : what they share with this process.
    store_times : of their requests to the store.
    shard_indexes : bytes that shard indexes may take in all of them.

    A thread that asks waits for a worker that is idle. A worker that is silent for too long
    is killed. A dead worker is not replaced, because this process has threads by then and
    may not fork. When no worker is left, every answer is None.
    """

    def __init__(
        self,
        count: int,
        memory: SharedMemory,
        config: WorkerConfig,
        patience: float = DEFAULT_PATIENCE_S,
    ) -> None:
        """Raises OSError where there cannot be so many processes.

        patience : seconds that a worker may take for a job without running at all.
        """
        self.memory = memory
        self.store_times = StoreTimes()
        self.shard_indexes = count * config.shard_indexes
        self._processes: list[_Process] = []
        self._idle: SimpleQueue[_Process | None] = SimpleQueue()
        self._lock = Lock()
        # What is here now stays in memory that is shared until it is written to.
        gc.freeze()
        try:
            for _ in range(count):
                process = _fork(memory, config, patience)
                self._processes.append(process)
                self._idle.put(process)
        except BaseException:
            self.close()
            raise

    def ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a job; None where nobody could answer. Blocks."""
        process = self._idle.get()
        if process is None:
            self._idle.put(None)
            return None
        try:
            process.channel.send(job)
            answer = process.channel.receive()
        except TimeoutError:
            log.error("worker process %d does not answer and is killed", process.pid)
            # Before a thread does its job: it must not store anything after that.
            os.kill(process.pid, signal.SIGKILL)
            answer = None
        except OSError:
            answer = None
        if answer is None:
            self._lost(process)
        else:
            self._idle.put(process)
            self.store_times.add(*answer.pop("store"))
        return answer

    def close(self) -> None:
        """End them; nobody may be asking."""
        for process in self._processes:
            process.channel.close()
        give_up = time.monotonic() + _END_TIMEOUT_S
        for process in self._processes:
            if _wait(process.pid, give_up) is None:
                os.kill(process.pid, signal.SIGKILL)
        self._processes.clear()

    def _lost(self, process: _Process) -> None:
        process.channel.close()
        with self._lock:
            self._processes.remove(process)
            left = len(self._processes)
            if not left:
                self._idle.put(None)
        status = _wait(process.pid, time.monotonic() + _END_TIMEOUT_S)
        log.error("worker process %d ended with status %s; %d left", process.pid, status, left)


def _wait(pid: int, give_up: float) -> int | None:
    """The exit status of a process; None if it has not ended until then."""
    while True:
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0  # whoever started the daemon has its children waited for
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > give_up:
            # It may hang in the kernel, and then even a signal does not end it soon.
            return None
        time.sleep(0.002)


def _fork(memory: SharedMemory, config: WorkerConfig, patience: float) -> _Process:
    ours, theirs = socket.socketpair()
    daemon = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        return _Process(pid, Channel(ours, WorkerPatience(pid, patience)))
    # Never through the parent's frames and exit handlers.
    status = 1
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end_with(daemon)
        _alone_with(theirs.fileno(), memory.file)
        work(Channel(theirs), memory, config)
        status = 0
    finally:
        os._exit(status)


def _end_with(daemon: int) -> None:
    """Have the kernel end this process when ``daemon`` ends, however it does.

    What it stored after that would come over what the next mount has stored.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != daemon:
        os._exit(1)


def _alone_with(*descriptors: int | None) -> None:
    """Let go of all that the daemon has open but these."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    kept = sorted(number for number in descriptors if number is not None)
    assert kept[0] > 2, "a standard stream was closed"
    for before, after in pairwise([2, *kept, os.sysconf("SC_OPEN_MAX")]):
        os.closerange(before + 1, after)
    os.chdir("/")
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        # Where memory runs out, the daemon can do without a worker, but not the other way.
        file.write("500")
    gc.enable()
