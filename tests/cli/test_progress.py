"""The bar that tells how far it is."""

import io
from types import SimpleNamespace

import pytest
from click import _termui_impl as click_bar

from zarrfs.cli import progress
from zarrfs.cli.progress import ProgressBar
from zarrfs.cli.sizes import size_text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """The time in a list, to be set."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(click_bar, "time", SimpleNamespace(time=lambda: now[0]))
    monkeypatch.setenv("COLUMNS", "90")
    return now


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    # Not in `sys` itself, where pytest puts its own again before the test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=terminal))
    return terminal


def test_bytes_rate_and_time_left(clock, terminal):
    with ProgressBar("export") as bar:
        bar(0, 4000 << 20)
        clock[0] += 10
        bar(1000 << 20, 4000 << 20)
        clock[0] += 10
        bar(2000 << 20, 4000 << 20)
        shown = terminal.getvalue().rpartition("\r")[2]
        assert shown.startswith("\x1b[?25lexport  [####")
        assert shown.endswith("]   50%  00:00:20  1.95 GiB of 3.91 GiB  100 MiB/s")
        clock[0] += 20
        bar(4000 << 20, 4000 << 20)
    shown = terminal.getvalue().rpartition("\r")[2]
    assert "]  100%  3.91 GiB of 3.91 GiB" in shown
    assert shown.endswith("\n"), "what follows gets its own line"


def test_what_was_there_before_does_not_count_as_speed(clock, terminal):
    with ProgressBar("export") as bar:
        for done in (900, 950, 960):
            bar(done, 1000)
            clock[0] += 10
    assert "960 bytes of 1000 bytes  5 bytes/s" in terminal.getvalue()


def test_the_bar_makes_room_for_other_lines(clock, terminal):
    with ProgressBar("check", "chunks") as bar:
        bar(5, -1)
        assert "5 chunks" in terminal.getvalue()
        bar.interrupt()
    assert terminal.getvalue().endswith("\r\x1b[K\x1b[?25h")


def test_silence_where_nobody_looks(clock, monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=pipe))
    with ProgressBar("export") as bar:
        clock[0] += 10
        bar(5, 10)
        bar(10, 10)
        bar.interrupt()
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (1536, "1.5 KiB"),
     (999_600, "976 KiB"), (1000 << 20, "1000 MiB"), (1 << 30, "1 GiB"), (2.5e15, "2.22 PiB"),
     (1e22, "more than 1024 EiB")],
)  # fmt: skip
def test_sizes(number, text):
    assert size_text(number) == text
