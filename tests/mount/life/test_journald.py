"""Lines in the journal of systemd, with their fields."""

import logging
import os
import socket
from pathlib import Path

import pytest

from zarrfs.daemon.system import journald, logs
from zarrfs.daemon.system.journald import JournalHandler, is_journal


@pytest.fixture
def journal(tmp_path: Path):
    """The other end: a function that reads one line's fields."""
    path = str(tmp_path / "journal")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(path)
        end.settimeout(20)

        def read() -> dict[str, str]:
            data, fields = end.recv(1 << 20), {}
            while data:
                name, separator, rest = data.partition(b"\n")
                if b"=" in name:
                    key, _, value = name.partition(b"=")
                else:
                    length = int.from_bytes(rest[:8], "little")
                    key, value, rest = name, rest[8 : 8 + length], rest[8 + length + 1 :]
                assert separator
                fields[key.decode()] = value.decode()
                data = rest
            return fields

        yield path, read


@pytest.fixture
def logger(journal):
    handler = JournalHandler({"ZARRFS_MOUNTPOINT": "/mnt/a\nb"}, journal[0])
    logger = logging.getLogger("zarrfs.test_journal")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield logger
    logger.removeHandler(handler)
    handler.close()


@pytest.mark.parametrize(
    ("level", "priority"),
    [("debug", "7"), ("info", "6"), ("warning", "4"), ("error", "3"), ("critical", "2")],
)
def test_fields(logger, journal, level, priority):
    getattr(logger, level)("c/0/0: %s", "is bad\n=and more")
    told = journal[1]()
    assert told["MESSAGE"] == "c/0/0: is bad\n=and more"
    assert told["PRIORITY"] == priority
    assert told["SYSLOG_IDENTIFIER"] == "zarrfs"
    assert told["LOGGER"] == "zarrfs.test_journal"
    assert told["CODE_FUNC"] == "test_fields"
    assert told["ZARRFS_MOUNTPOINT"] == "/mnt/a\nb"


def test_whether_stderr_is_the_journal(tmp_path):
    with open(tmp_path / "file", "w") as file:
        status = os.fstat(file.fileno())
        assert is_journal(file.fileno(), f"{status.st_dev}:{status.st_ino}")
        assert not is_journal(file.fileno(), f"{status.st_dev}:{status.st_ino + 1}")
        assert not is_journal(file.fileno(), None)
    assert not is_journal(file.fileno() if not file.closed else 10_000, "1:2")


def test_where_the_log_goes(journal, monkeypatch, tmp_path):
    monkeypatch.setattr(logs, "JournalHandler", lambda fields: JournalHandler(fields, journal[0]))
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)

    def target(**config) -> logging.Handler:
        handler = logs._open_target(logs.LogConfig(**config))
        handler.close()
        return handler

    assert isinstance(target(foreground=False), JournalHandler)
    assert type(target(foreground=True)) is logs.StderrHandler
    status = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
    assert isinstance(target(foreground=True), JournalHandler)
    assert not isinstance(target(path=str(tmp_path / "log")), JournalHandler)
    assert journald._SOCKET == "/run/systemd/journal/socket"
