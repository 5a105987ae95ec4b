"""Performs the tasks of a command: here, or with any ``concurrent.futures.Executor``.

A task is a value that can be pickled. It may be performed twice with the same result, so an engine
may do that when a worker is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

from zarrfs.errors import UsageError, ZarrfsError, to_install
from zarrfs.library.source import SourceOptions
from zarrfs.memory.allocator import keep_freed_memory
from zarrfs.memory.default_memory import all_memory
from zarrfs.store.redact import shown_url

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_Thing = TypeVar("_Thing")

RESOURCE = "memory"
"""The resource of a Dask worker that tells how many bytes its tasks may take together."""

_WAIT_S = 5.0
# Decoded bytes, and number, of what a task has that is sent to a worker.
_TASK_BYTES, _MOST_IN_TASK = 256 << 20, 4096
# A task for each thread of the workers, and one that waits.
_QUEUED = 2
# Storage options that hold no secret; all others stay on the machine that was given them.
_OPEN_OPTIONS = frozenset(
    ("anon", "endpoint_url", "region", "region_name", "use_ssl", "requester_pays",
     "addressing_style", "s3", "client_kwargs", "config_kwargs", "asynchronous", "protocol")
)  # fmt: skip


class WorkersLost(ZarrfsError):
    """The workers, or their scheduler, have gone."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Workers elsewhere.

    executor : performs tasks, in other processes.
    at_once : tasks that are handed to it at once.
    """

    executor: Executor
    at_once: int


def run(
    executor: Executor,
    at_once: int,
    perform: Callable[[_Task], _Result],
    tasks: Iterable[_Task],
    idle: Callable[[], object] = lambda: None,
) -> Iterator[tuple[_Task, _Result | ZarrfsError]]:
    """Tasks with their results or errors, as they end. Few of them wait at any time.

    idle : called every few seconds.

    Raises WorkersLost.
    """
    coming = iter(tasks)
    running: dict[Future[_Result], _Task] = {}
    work = partial(_in_worker, perform) if _is_remote(executor) else perform
    try:
        while True:
            try:
                for task in islice(coming, at_once - len(running)):
                    running[executor.submit(work, task)] = task
            except RuntimeError as error:
                raise _lost(error) from error
            if not running:
                return
            done, _ = wait(running, _WAIT_S, FIRST_COMPLETED)
            idle()
            for future in done:
                task = running.pop(future)
                try:
                    yield task, future.result()
                except ZarrfsError as error:
                    yield task, error.without_frames()
                except (CancelledError, Exception) as error:  # - of any engine
                    if not _is_remote(executor):
                        raise
                    raise _lost(error) from error
    finally:
        for future in running:
            future.cancel()
        wait(running, None if not _is_remote(executor) else _WAIT_S)


def per_task(size: int) -> int:
    """How many things of ``size`` decoded bytes a task has that is sent to a worker."""
    return min(max(1, _TASK_BYTES // max(1, size)), _MOST_IN_TASK)


def batches(things: Iterable[_Thing], most: int) -> Iterator[tuple[_Thing, ...]]:
    """All of them in order, at most so many together."""
    coming = iter(things)
    while some := tuple(islice(coming, most)):
        yield some


def _in_worker(perform: Callable[[_Task], _Result], task: _Task) -> _Result:
    # Dask has its workers return memory with each chunk. The kernel then clears the memory of each
    # new chunk, and a check takes twice the processor time.
    keep_freed_memory()
    return perform(task)


def _is_remote(executor: Executor) -> bool:
    return not type(executor).__module__.startswith("concurrent.futures.thread")


def _lost(error: BaseException) -> WorkersLost:
    said = " ".join(str(error).split())[:300]
    name = type(error).__name__
    return WorkersLost(f"a worker was lost, or failed: {name}{': ' if said else ''}{said}")


class Finished:
    """Which of numbered tasks are finished: the ``first`` ones, and ``others`` behind these."""

    def __init__(self, first: int = 0, others: Iterable[int] = ()) -> None:
        self.first = first
        self.others = set(others)

    def __contains__(self, number: int) -> bool:
        return number < self.first or number in self.others

    def add(self, numbers: Iterable[int]) -> None:
        self.others.update(numbers)
        while self.first in self.others:
            self.others.discard(self.first)
            self.first += 1


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The engine that a user names.

    scheduler : ``none``, ``dask`` for a cluster of processes on this machine, or the address of a
        scheduler, such as ``tcp://host:8786``.
    scheduler_file : written by a Dask scheduler, in place of its address.
    client : a client of Dask, or any executor, in place of both.
    """

    scheduler: str = "none"
    scheduler_file: str | None = None
    client: Any = None


@contextmanager
def engine(config: EngineConfig, memory: int) -> Iterator[Engine | None]:
    """The engine; None: this process.

    memory : bytes of a task.

    Raises UsageError.
    """
    client = config.client
    with ExitStack() as stack:
        if client is None and config.scheduler_file is None and config.scheduler == "none":
            yield None
        elif isinstance(client, Executor):
            yield Engine(client, _threads_of(client))
        else:
            if client is None:
                client = stack.enter_context(
                    _connected(config.scheduler, config.scheduler_file, memory)
                )
            yield _of_dask(client, memory)


@contextmanager
def _connected(scheduler: str, scheduler_file: str | None, memory: int) -> Iterator[Any]:
    distributed: Any
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise UsageError(f"--scheduler needs Dask: {to_install('dask')}") from error
    with ExitStack() as stack:
        address: Any = None
        if scheduler_file is None and scheduler == "dask":
            workers = max(1, min(os.cpu_count() or 1, all_memory() // 2 // memory))
            address = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    memory_limit=0,
                    resources={RESOURCE: memory},
                    silence_logs=50,
                )
            )
        elif scheduler_file is None:
            address = scheduler
            if "://" not in address:
                raise UsageError(
                    f"--scheduler is {scheduler!r}: none, dask, or an address like tcp://HOST:8786"
                )
        try:
            client = distributed.Client(address, scheduler_file=scheduler_file, timeout=30)
        except (OSError, ValueError, TypeError) as error:
            where = scheduler_file or scheduler
            raise UsageError(f"no Dask scheduler at {where}: {error}") from error
        yield stack.enter_context(client)


def _of_dask(client: Any, memory: int) -> Engine:
    """As many tasks at once as the workers have threads and memory for.

    If the workers name the resource, each task says how much of it it takes. If not, they get
    fewer tasks than they have threads, where those would need more memory than the workers have.
    """
    if not hasattr(client, "get_executor"):
        raise UsageError(f"{client!r} is neither a client of Dask nor an executor")
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    given: dict[str, Any] = {"pure": False, "retries": 2}
    if workers and all(RESOURCE in worker.get("resources", {}) for worker in workers):
        given["resources"] = {RESOURCE: memory}
        at_once = sum(int(each["resources"][RESOURCE] // memory) for each in workers)
        if not at_once:
            raise UsageError(f"no worker has {memory} bytes of its resource {RESOURCE}")
        return Engine(client.get_executor(**given), at_once + _QUEUED)
    at_once = 0
    for worker in workers:
        limit = worker.get("memory_limit") or 0
        room = int(limit * 0.6) // memory if limit else worker["nthreads"]
        at_once += max(1, min(worker["nthreads"], room))
    # None waits at a worker, which might begin it beside the others.
    return Engine(client.get_executor(**given), max(1, at_once))


def _threads_of(executor: Executor) -> int:
    return int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)


def for_workers(options: SourceOptions, *sources: str) -> SourceOptions:
    """Options for tasks of other processes, without secrets.

    Raises UsageError for what would be one: workers have secrets in their own environment.
    """
    for source in sources:
        if shown_url(source) != source:
            raise UsageError("a URL with a user, a password or a query is not sent to workers")
    given: Mapping[str, object] = options.storage_options
    secret = sorted(set(given) - _OPEN_OPTIONS)
    nested = given.get("client_kwargs")
    if isinstance(nested, Mapping):
        secret += sorted(set(nested) - _OPEN_OPTIONS)
    if secret:
        raise UsageError(
            f"the storage option {secret[0]} is not sent to workers: set it in their environment"
        )
    return replace(options, memory=options.memory_bytes)
