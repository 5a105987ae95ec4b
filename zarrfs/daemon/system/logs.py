"""The daemon's log: threads that log never wait for its target.

The event loop logs too. A pipe that nobody reads or a syslog that stands still would hang
the mount, so one thread writes, and lines that it cannot keep up with are lost and counted.
"""

from __future__ import annotations

import faulthandler
import logging
import logging.handlers
import os
import queue
import threading
from typing import NamedTuple

from zarrfs.counted import counted
from zarrfs.daemon.system.journald import JournalHandler, is_journal
from zarrfs.errors import UsageError

_SYSLOG = "/dev/log"
_MAX_WAITING = 10_000
_STOP_TIMEOUT_S = 2.0
_FORMAT = "%(asctime)s zarrfs[%(process)d] %(levelname)s %(name)s: %(message)s"
_JOURNAL_FORMAT = "%(message)s"
_SYSLOG_FORMAT = "zarrfs[%(process)d]: %(levelname)s %(message)s"


class LogConfig(NamedTuple):
    """Where the log goes.

    level : of what zarrfs says: debug, info, warning, error. Other libraries are heard
        from warnings up.
    path : appended to; reopened when it is rotated away. None: see ``foreground``.
    foreground : to stderr; else to the journal of systemd or to syslog, where there is one.
        A stderr that leads to the journal is written to as the journal.
    mount_point : named with each line in the journal.
    """

    level: str = "info"
    path: str | None = None
    foreground: bool = False
    mount_point: str = ""


class LogThread(logging.handlers.QueueHandler):
    """Hands records to the thread that writes them.

    Raises `UsageError` where the log cannot be opened.
    """

    def __init__(self, config: LogConfig) -> None:
        self._waiting: queue.Queue[logging.LogRecord | threading.Event] = queue.Queue(_MAX_WAITING)
        super().__init__(self._waiting)
        self._target = _open_target(config)
        self._lost = 0
        threading.Thread(target=self._run, name="log", daemon=True).start()
        # Warnings of libraries must not be printed on a terminal that has closed.
        logging.raiseExceptions = False
        logging.captureWarnings(capture=True)
        root = logging.getLogger()
        root.addHandler(self)
        root.setLevel(logging.WARNING)
        logging.getLogger("zarrfs").setLevel(config.level.upper())

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        # Arguments and tracebacks become text there, because they may change or hold memory.
        record = super().prepare(record)
        record.msg = record.message = _harmless(record.msg)
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._lost += 1

    def drain(self) -> None:
        """Waits, within a bound, until what was logged is written."""
        written = threading.Event()
        try:
            self._waiting.put(written, timeout=_STOP_TIMEOUT_S)
        except queue.Full:
            return
        written.wait(_STOP_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            item = self._waiting.get()
            if isinstance(item, threading.Event):
                item.set()
                continue
            self._target.handle(item)
            if self._lost:
                lost, self._lost = self._lost, 0
                said = f"lost {counted(lost, 'line')}"
                self._target.handle(
                    logging.LogRecord(__name__, logging.WARNING, "", 0, said, None, None)
                )


class StderrHandler(logging.Handler):
    """Writes to descriptor 2.

    Not to ``sys.stderr``: a write to a full pipe would hold its lock, for which the process would
    wait when it flushes its streams at its end.
    """

    def emit(self, record: logging.LogRecord) -> None:
        data = f"{self.format(record)}\n".encode(errors="backslashreplace")
        try:
            while data:
                data = data[os.write(2, data) :]
        except OSError:
            self.handleError(record)


def _harmless(text: str) -> str:
    """The text without control characters; its lines but the first are indented.

    Names in data can hold whatever would look like another entry, or move a cursor.
    """
    if text.isprintable():
        return text
    shown = (
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )
    return "".join(shown).replace("\n", "\n    ")


def stacks() -> str:
    """The stacks of all threads."""
    # faulthandler writes to a descriptor only, and works in a process that hangs.
    file = os.memfd_create("zarrfs-stacks")
    try:
        faulthandler.dump_traceback(file, all_threads=True)
        return os.pread(file, 1 << 20, 0).decode(errors="replace").rstrip()
    finally:
        os.close(file)


def _open_target(config: LogConfig) -> logging.Handler:
    handler: logging.Handler
    text_format = _FORMAT
    if config.path is not None:
        try:
            handler = logging.handlers.WatchedFileHandler(config.path, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"option log_file: {config.path}: {error.strerror}") from error
    elif config.foreground and not is_journal(2, os.environ.get("JOURNAL_STREAM")):
        handler = StderrHandler()
    else:
        try:
            handler = JournalHandler({"ZARRFS_MOUNTPOINT": config.mount_point})
            text_format = _JOURNAL_FORMAT
        except OSError:
            handler = StderrHandler() if config.foreground else _syslog()
            text_format = _FORMAT if config.foreground else _SYSLOG_FORMAT
    handler.setFormatter(logging.Formatter(text_format))
    return handler


def _syslog() -> logging.Handler:
    try:
        return logging.handlers.SysLogHandler(
            _SYSLOG, facility=logging.handlers.SysLogHandler.LOG_DAEMON
        )
    except OSError:
        return logging.NullHandler()
