"""Processes that perform jobs for the daemon, each with an interpreter of its own.

Codecs and system calls release the interpreter's lock, but each of them takes it again. If chunks
are small, threads spend more time waiting for each other than decoding.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Lock
from typing import Any, NamedTuple, TypeVar

from zarrfs.jobs import answers
from zarrfs.jobs.channel import DEFAULT_PATIENCE_S, Channel, WorkerPatience
from zarrfs.jobs.job import BadAnswer, NoAnswer, Unable
from zarrfs.jobs.nursery import Nursery, wait
from zarrfs.jobs.worker import WorkerConfig
from zarrfs.store.wrappers.timed import StoreTimes

log = logging.getLogger(__name__)

R = TypeVar("R")

_END_TIMEOUT_S = 5.0
# Seconds until a dead worker is replaced, except for the first few: data on which decoders crash
# must not keep the machine busy with forks.
_REPLACED_AFTER_S = 10.0
_REPLACED_AT_ONCE = 4


class _Process(NamedTuple):
    pid: int
    channel: Channel


class WorkerPool:
    """``count`` processes.

    memory : shared by the workers and this process.
    store_times : of the workers' requests to the store.
    shard_indexes : bytes that shard indexes may take in all workers together.

    A thread with a job waits for an idle worker. A worker that dies, is silent for too long or
    answers nonsense is killed and replaced, but not too often. If there are no workers, `ask`
    raises NoAnswer.

    Shared state, under ``_changed``: ``_workers``, all workers; ``_idle``, those without a job; and
    ``_tokens``, how many may be replaced at the time ``_counted``. A thread that talks to the
    nursery holds ``_forking``, and takes ``_changed`` within it.
    """

    def __init__(
        self,
        count: int,
        nursery: Nursery,
        config: WorkerConfig,
        patience: float = DEFAULT_PATIENCE_S,
    ) -> None:
        """Raises OSError if so many processes cannot be started.

        nursery : forks the workers, and ends after them.
        patience : seconds that a worker may take for a job without any processor time.
        """
        self.memory = config.memory
        self.store_times = StoreTimes()
        self.shard_indexes = count * config.shard_indexes
        self._count = count
        self._nursery = nursery
        self._patience = patience
        self._workers: list[_Process] = []
        self._idle: deque[_Process] = deque()
        self._tokens = float(_REPLACED_AT_ONCE)
        self._counted = time.monotonic()
        self._changed = Condition()
        self._forking = Lock()
        self._closed = False
        try:
            for _ in range(count):
                self._add()
        except BaseException:
            self.close()
            raise

    def ask(self, job: bytes, accept: Callable[[Any], R]) -> R:
        """The value of ``accept`` for a worker's answer to a job. Blocks.

        accept : raises BadAnswer for an invalid answer.

        Raises `NoAnswer`, and `Unable` if the worker answers that it cannot perform the job.
        """
        self._replace_lost()
        worker = self._take()
        if worker is None:
            raise NoAnswer
        try:
            result = accept(self._answer(worker, job))
        except (NoAnswer, BadAnswer) as error:
            self._lose(worker, str(error))
            raise NoAnswer from error
        except BaseException:
            self._give_back(worker)
            raise
        self._give_back(worker)
        return result

    def _answer(self, worker: _Process, job: bytes) -> Any:
        """The value of `Job.answer`, unchecked. Raises NoAnswer, BadAnswer and Unable."""
        try:
            worker.channel.send(job)
            message = worker.channel.receive()
        except TimeoutError as error:
            raise NoAnswer("does not answer") from error
        except OSError as error:
            raise NoAnswer("has died") from error
        if message is None:
            raise NoAnswer("has died")
        try:
            why, answer, times = answers.items(json.loads(message), 3)
        except (ValueError, RecursionError) as error:
            raise BadAnswer(f"does not answer in JSON: {error}") from error
        *counts, seconds = answers.items(times, 5)
        if not isinstance(why, str | None):
            raise BadAnswer(f"says {why!r:.100}")
        requests, failures, read_bytes, written_bytes = map(answers.number, counts)
        seconds = answers.seconds(seconds)
        self.store_times.add(requests, failures, read_bytes, written_bytes, seconds)
        if why is not None:
            raise Unable(why)
        return answer

    def close(self) -> None:
        """End all workers. A thread that is left in `ask` gets `NoAnswer`."""
        with self._forking, self._changed:
            self._closed = True
            workers, self._workers = self._workers, []
            self._idle.clear()
            self._changed.notify_all()
        for worker in workers:
            worker.channel.close()
        give_up = time.monotonic() + _END_TIMEOUT_S
        for worker in workers:
            if wait(worker.pid, give_up) is None:
                os.kill(worker.pid, signal.SIGKILL)

    def _take(self) -> _Process | None:
        with self._changed:
            while self._workers and not self._idle:
                self._changed.wait()
            # In turn, so that a dead worker is noticed soon.
            return self._idle.popleft() if self._idle else None

    def _give_back(self, worker: _Process) -> None:
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()

    def _lose(self, worker: _Process, why: str) -> None:
        """Kill a worker before another thread repeats its job: it must store nothing after that.

        The worker has the job of this thread, so no other thread uses it.
        """
        with self._changed:
            if self._closed:
                return  # `close` ends it
            self._workers.remove(worker)
            left = len(self._workers)
            self._changed.notify_all()
        os.kill(worker.pid, signal.SIGKILL)
        status = wait(worker.pid, time.monotonic() + _END_TIMEOUT_S)
        worker.channel.close()
        log.error(
            "worker process %d %s, and ended with status %s; %d left",
            worker.pid, why, status, left,
        )  # fmt: skip
        self._replace_lost()

    def _replace_lost(self) -> None:
        """Fork as many workers as are missing, as far as they may be replaced now."""
        while len(self._workers) < self._count and self._forking.acquire(blocking=False):
            try:
                if self._closed or not self._may_replace():
                    return
                self._add()
            except OSError as error:
                log.error("a worker process cannot be replaced: %s", error)
                return
            finally:
                self._forking.release()

    def _may_replace(self) -> bool:
        """Whether a worker may be replaced now; if so, this counts as a replacement."""
        with self._changed:
            now = time.monotonic()
            self._tokens += (now - self._counted) / _REPLACED_AFTER_S
            self._tokens = min(self._tokens, _REPLACED_AT_ONCE)
            self._counted = now
            if self._tokens < 1 or len(self._workers) >= self._count:
                return False
            self._tokens -= 1
            return True

    def _add(self) -> None:
        """Start a worker. Raises OSError."""
        pid, connection = self._nursery.spawn()
        worker = _Process(pid, Channel(connection, WorkerPatience(pid, self._patience)))
        with self._changed:
            self._workers.append(worker)
            self._idle.append(worker)
            self._changed.notify()
