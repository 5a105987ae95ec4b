"""The composition root: source, file system, FUSE session, and their end in reverse."""

from __future__ import annotations

import datetime
import faulthandler
import functools
import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, NamedTuple

import trio

from zarrfs import __version__
from zarrfs.daemon.life.control_socket import ControlSocket
from zarrfs.daemon.life.drain import Drain, DrainConfig
from zarrfs.daemon.life.end_report import EndReport
from zarrfs.daemon.life.lifecycle import Lifecycle, LifecycleConfig
from zarrfs.daemon.options.configs import Configs, configs
from zarrfs.daemon.options.options import MountOptions
from zarrfs.daemon.own_mount_point import remove_mount_point
from zarrfs.daemon.request import MountRequest
from zarrfs.daemon.source.checks import check_disjoint
from zarrfs.daemon.source.opening import open_source, with_groups_above
from zarrfs.daemon.system.background import Ready
from zarrfs.daemon.system.logs import LogConfig, LogThread, stacks
from zarrfs.daemon.system.service_manager import ServiceManager
from zarrfs.daemon.system.signals import Signals
from zarrfs.daemon.workers import Forked, fork_workers
from zarrfs.errors import MountError, StoreReadOnly, ZarrfsError, unexpected
from zarrfs.format.codecs.own_process import own_process
from zarrfs.fs.config import FileSystemConfig
from zarrfs.fs.filesystem import FileSystem
from zarrfs.fuse.notify import NotificationThread
from zarrfs.fuse.operations import Operations
from zarrfs.fuse.presentation import Presentation
from zarrfs.fuse.session import Session
from zarrfs.fuse.watchdog import Watchdog, WatchdogConfig
from zarrfs.jobs.channel import DEFAULT_PATIENCE_S
from zarrfs.jobs.worker_pool import WorkerPool
from zarrfs.memory.allocator import keep_freed_memory, reuse_freed_memory
from zarrfs.store.base import Store
from zarrfs.store.open import local_directory
from zarrfs.store.wrappers.overlay import OverlayStore

_log = logging.getLogger(__name__)

# How long a thread may hold the interpreter's lock while the event loop wants it, in mounts that
# only read. A reader waits for the loop: with the default of 5 ms, cold scans of arrays that are
# quick to decode took 1.05 to 1.2 times as long. Writable mounts keep the default: from threads
# that store, the loop would take the lock again and again, and overwrites take 0.90 of the time
# with the default.
_SWITCH_INTERVAL_S = 0.0005

_NOTIFY_TIMEOUT_S = 5.0

OpenFileSystem = Callable[
    [Store, FileSystemConfig, Mapping[str, Any], WorkerPool | None], FileSystem
]


class ServeConfig(NamedTuple):
    """Settings without a mount option, which tests change.

    open_filesystem : as `FileSystem.open`.
    worker_patience : seconds that a worker process may take for a job without running at
        all; then threads do it.
    """

    lifecycle: LifecycleConfig = LifecycleConfig()
    watchdog: WatchdogConfig = WatchdogConfig()
    drain: DrainConfig = DrainConfig()
    open_filesystem: OpenFileSystem = FileSystem.open
    worker_patience: float = DEFAULT_PATIENCE_S


_DEFAULTS = ServeConfig()
_BEYOND_DRAIN_S = 120.0


def serve(request: MountRequest, ready: Ready, config: ServeConfig = _DEFAULTS) -> None:
    """Mounts what is requested and serves it until its end.

    request : its mount point absolute and without symbolic links.
    ready : called when the mount answers; see `Ready`.

    Raises `ZarrfsError`; before it calls ``ready``, that means that nothing is mounted. No other
    exception leaves it, and all are in the log.
    """
    options = request.options
    own_process()
    forked = fork_workers(request, config.worker_patience)
    # Before any thread has memory of its own, which would not be shared.
    _set_up_process(writable=options.rw)
    log = LogThread(
        LogConfig(
            level=options.log_level,
            path=options.log_file,
            foreground=request.foreground,
            mount_point=request.place,
        )
    )
    faulthandler.enable()
    try:
        _serve(request, ready, config, log, forked)
    except ZarrfsError as error:
        if not request.foreground:
            _log.error("%s", error)
        raise
    except Exception as error:
        _log.exception("the daemon failed")
        raise MountError(unexpected(error)) from error
    finally:
        log.drain()


def _set_up_process(*, writable: bool) -> None:
    # How many threads obstore starts; by default one for each processor. A thread of zarrfs waits
    # for each request in any case, and several threads of obstore would only wake one another.
    os.environ.setdefault("TOKIO_WORKER_THREADS", "1")
    if writable:
        keep_freed_memory()
    else:
        reuse_freed_memory()
        sys.setswitchinterval(_SWITCH_INTERVAL_S)


def _serve(
    request: MountRequest,
    ready: Ready,
    config: ServeConfig,
    log: LogThread,
    forked: Forked,
) -> None:
    writable = request.options.rw
    signals = Signals()
    # In the background this is the child of a command, which may be any service's.
    manager = ServiceManager.from_environment(os.environ if request.foreground else {})
    # Torn down from the last to the first. The watchdog is the first, to bound the rest.
    with ExitStack() as stack:
        watchdog = Watchdog(config.watchdog, dump=stacks, flush=log.drain)
        stack.callback(watchdog.stop)
        stack.callback(manager.close)
        stack.callback(forked.close)
        manager.set_status("opening the source")
        store = open_source(request, stack)
        for source in request.sources:
            check_disjoint(local_directory(source), request.place)
        source = store.local_path or store.url
        options = request.options
        if store.traits.immutable and not options.rw:
            options = replace(options, immutable=True)
        settings = configs(options, source=source, local=store.traits.near)
        settings = settings._replace(filesystem=with_groups_above(settings.filesystem, request))
        document = _document(request, source, settings)
        filesystem = _open(
            config.open_filesystem, store, settings.filesystem, document, forked.workers
        )
        stack.callback(filesystem.close)
        control = ControlSocket()
        document["control"] = control.name
        stack.callback(control.close)
        drain = None
        if writable:
            report = EndReport()
            document["end_report"] = report.path
            stack.callback(report.close)
            limits = _drain_limits(config.drain, request.options)
            drain = Drain(
                filesystem,
                watchdog,
                report,
                signals,
                limits,
                functools.partial(_report_progress, manager, limits.stall_seconds),
            )
            watchdog.rescue_with(drain.rescue)
            stack.callback(drain)
        if not request.foreground and all(map(local_directory, request.sources)):
            # Keeps no directory busy. References of a remote source may be relative paths.
            os.chdir("/")
        notifications = NotificationThread()
        filesystem.set_kernel_cache(notifications)
        begun = trio.Event()
        operations = Operations(
            filesystem,
            Presentation(settings.presentation),
            begun.set,
            writable=writable,
            xattr=request.options.xattr or not writable,
        )
        if request.made:
            stack.callback(remove_mount_point, request.place)
        # From here to the event loop and after it, a signal would leave the mount behind.
        signals.hold()
        session = Session(operations, request.place, settings.session)
        stack.callback(forked.at_death, None)
        stack.push(functools.partial(_end, session, notifications, drain, begun.is_set))
        forked.at_death(session.connection)
        watchdog.start(session.connection)
        lifecycle = Lifecycle(
            config=config.lifecycle,
            filesystem=filesystem,
            session=session,
            watchdog=watchdog,
            signals=signals,
            notifications=notifications,
            manager=manager,
            ready=ready,
            begun=begun,
            control=control,
            nursery=forked.nursery,
            overlay=store if isinstance(store, OverlayStore) else None,
            source=source,
            tuning=settings.tuning,
            writable=writable,
        )
        trio.run(lifecycle.live)
    _log.info("unmounted %s", request.place)


def _drain_limits(config: DrainConfig, options: MountOptions) -> DrainConfig:
    if options.drain_timeout is None:
        return config
    # The watchdog is for what hangs beyond that.
    stall = max(config.stall_seconds, options.drain_timeout + _BEYOND_DRAIN_S)
    return config._replace(timeout_seconds=options.drain_timeout, stall_seconds=stall)


def _report_progress(manager: ServiceManager, stall_seconds: float, left: int) -> None:
    manager.alive()
    manager.set_status(f"storing changes: {left} bytes left")
    # The watchdog ends a drain that stands still before that.
    manager.extend(2 * stall_seconds)


def _open(
    open_filesystem: OpenFileSystem,
    store: Store,
    config: FileSystemConfig,
    document: Mapping[str, Any],
    workers: WorkerPool | None,
) -> FileSystem:
    try:
        return open_filesystem(store, config, document, workers)
    except StoreReadOnly as error:
        raise MountError(f"cannot be mounted with -o rw: {error}") from error


def _end(
    session: Session,
    notifications: NotificationThread,
    drain: Drain | None,
    used: Callable[[], bool],
    kind: type[BaseException] | None,
    _error: BaseException | None,
    _trace: TracebackType | None,
) -> None:
    """Unmounts after a clean end, and where nobody has used the mount yet.

    After a failure the mount point is left without a daemon: programs there see
    errors, and not an empty directory. The next mount clears it.

    drain : of a writable mount.
    """
    if drain is not None and session.disconnected and session.connection.mounted:
        drain.aborted()
    if not notifications.stop(_NOTIFY_TIMEOUT_S):
        # The kernel waits for pages that nobody will deliver any more.
        session.connection.abort()
        if not notifications.stop(_NOTIFY_TIMEOUT_S):
            # The session must not be destroyed under the thread that uses it.
            raise MountError("the kernel does not return from a notification")
    session.close(unmount=kind is None or not used())


def _document(request: MountRequest, source: str, settings: Configs) -> dict[str, Any]:
    """The content of ``.zarrfs/config.json``."""
    return {
        "version": __version__,
        "pid": os.getpid(),
        "source": source,
        "mountpoint": request.place,
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "options": dict(settings.shown),
    }
