"""The journal of systemd, each line with its fields.

https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
"""

from __future__ import annotations

import logging
import logging.handlers
import os

_SOCKET = "/run/systemd/journal/socket"
_MOST = 48 << 10  # what a datagram surely takes


class JournalHandler(logging.handlers.DatagramHandler):
    """Writes records to the journal.

    fields : with each of them, upper-case names.

    Raises `OSError` where there is no journal.
    """

    def __init__(self, fields: dict[str, str], path: str = _SOCKET) -> None:
        super().__init__(path, None)
        self._fields = fields
        self.sock = self.makeSocket()
        try:
            self.sock.connect(path)
        except OSError:
            self.close()
            raise

    def makePickle(self, record: logging.LogRecord) -> bytes:  # noqa: N802 - what is sent
        message = self.format(record)
        fields = {
            "MESSAGE": message if len(message) <= _MOST // 4 else f"{message[: _MOST // 4]}…",
            "PRIORITY": str(_priority(record.levelname)),
            "SYSLOG_IDENTIFIER": "zarrfs",
            "LOGGER": record.name,
            "THREAD_NAME": record.threadName or "",
            "CODE_FILE": record.pathname,
            "CODE_LINE": str(record.lineno),
            "CODE_FUNC": record.funcName or "",
            **self._fields,
        }
        return b"".join(_field(name, value) for name, value in fields.items())


def is_journal(descriptor: int, stream: str | None) -> bool:
    """Whether ``descriptor`` leads to the journal; ``stream`` is what JOURNAL_STREAM says."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return stream == f"{status.st_dev}:{status.st_ino}"


def _priority(level: str) -> int:
    syslog = logging.handlers.SysLogHandler
    return syslog.priority_names[syslog.priority_map.get(level, "warning")]


def _field(name: str, value: str) -> bytes:
    data = value.encode(errors="backslashreplace")
    if b"\n" not in data:
        return b"%s=%s\n" % (name.encode(), data)
    return b"%s\n%s%s\n" % (name.encode(), len(data).to_bytes(8, "little"), data)
