"""The line that tells how far it is."""

import io
from types import SimpleNamespace

import pytest

from zarrfs.cli import progress
from zarrfs.cli.progress import ProgressLine
from zarrfs.cli.sizes import size_text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """The time in a list, to be set."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "90")
    return now


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    # Not in `sys` itself, where pytest puts its own again before the test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    return terminal


def test_bytes_rate_and_time_left(clock, terminal):
    with ProgressLine("export") as line:
        line(0, 4000 << 20)
        clock[0] += 10
        line(1000 << 20, 4000 << 20)
        shown = terminal.getvalue().rpartition("\r")[2]
        assert shown == (
            "export [######..................]  25%  1000 MiB of 3.91 GiB  100 MiB/s  0:00:30 left"
        )
        clock[0] += 30
        line(4000 << 20, 4000 << 20)
    assert terminal.getvalue().endswith("100%  3.91 GiB of 3.91 GiB  100 MiB/s  in 0:00:40\n")


def test_what_was_there_before_does_not_count_as_speed(clock, terminal):
    with ProgressLine("export") as line:
        line(900, 1000)
        clock[0] += 10
        line(950, 1000)
    assert "950 bytes of 1000 bytes  5 bytes/s" in terminal.getvalue()
    assert "0:00:10 left" in terminal.getvalue()


def test_silence_where_nobody_looks(clock, monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=pipe))
    with ProgressLine("export") as line:
        clock[0] += 10
        line(5, 10)
        line(10, 10)
        line.interrupt()
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"),
     (999_600, "976 KiB"), (1000 << 20, "1000 MiB"), (1 << 30, "1 GiB"), (2.5e15, "2.22 PiB"),
     (1e22, "more than 1024 EiB")],
)  # fmt: skip
def test_sizes(number, text):
    assert size_text(number) == text
