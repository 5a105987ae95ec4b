"""The end of a writable mount: what is stored then, how long that may take, what is told."""

import logging
import os
import signal
import threading

import pytest

from tests.waiting import wait_until
from zarrfs.daemon.life.drain import ChangesNotStored, Drain, DrainConfig
from zarrfs.daemon.life.end_report import End, EndReader, EndReport
from zarrfs.daemon.system.signals import SIGNALS, Signals
from zarrfs.errors import StoreFull, StoreTimeout, ZarrfsError

FULL = StoreFull("c/0", "full")
LOST = ZarrfsError("pages are lost")


class Changes:
    """Each call of `drain` takes one of ``attempts``: bytes stored, and what it raises then."""

    def __init__(self, *attempts: tuple[int, list]) -> None:
        self.attempts = list(attempts)
        self.dirty_bytes = 100

    def give_up(self) -> None:
        raise AssertionError("there is time enough")

    def lost_pages(self) -> list:
        return [LOST]

    def describe_state(self) -> str:
        return "the state"

    def drain(self) -> list:
        stored, errors = self.attempts.pop(0)
        self.dirty_bytes -= stored
        return errors


class PatientWatchdog:
    def __init__(self) -> None:
        self.postponed = 0

    def postpone_end(self, seconds: float) -> None:
        assert seconds == 600
        self.postponed += 1


@pytest.fixture
def report():
    report = EndReport()
    yield report
    report.close()


@pytest.fixture
def reader(report):
    reader = EndReader(report.path)
    yield reader
    reader.close()


@pytest.fixture
def signals():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    handlers = [signal.getsignal(number) for number in SIGNALS]
    signals = Signals()
    signals.hold()
    yield signals
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    for number, handler in zip(SIGNALS, handlers, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def drain(report, signals):
    def run(changes: Changes, **settings: float) -> PatientWatchdog:
        watchdog = PatientWatchdog()
        config = DrainConfig(**{"pause_seconds": 0.01, **settings})
        Drain(changes, watchdog, report, signals, config)()
        return watchdog

    return run


def test_progress_counts(drain, reader):
    """As long as something is stored, it goes on."""
    drain(Changes(*[(10, [FULL])] * 9, (10, [])))
    assert reader.read() == End(stored=True)


def test_without_another_thread_this_one_stores(drain, reader, monkeypatch):
    def start(_thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    drain(Changes((100, [])))
    assert reader.read() == End(stored=True)


def test_given_up(drain, reader, caplog):
    changes = Changes(*[(0, [FULL] * 7)] * 4)
    with pytest.raises(ChangesNotStored) as caught:
        drain(changes)
    assert str(caught.value) == "changes could not be stored: c/0: full"
    assert len(changes.attempts) == 1
    assert reader.read() == End(reasons=("c/0: full",) * 5 + ("and 2 more",))
    assert sum("not stored: c/0: full" in record.message for record in caplog.records) == 7


def test_all_attempts_together_have_one_deadline(drain):
    changes = Changes(*[(0, [FULL])] * 50)
    with pytest.raises(ChangesNotStored):
        drain(changes, attempts=1000, pause_seconds=0.2, timeout_seconds=0.5)
    assert len(changes.attempts) >= 46


def test_after_the_deadline_the_store_is_waited_for_no_more(drain, reader):
    class Away(Changes):
        def __init__(self) -> None:
            super().__init__()
            self.gone = threading.Event()

        def give_up(self) -> None:
            self.gone.set()

        def drain(self) -> list:
            # As one that waits for a store, and then writes to the journal.
            self.gone.wait(60)
            return [StoreTimeout("c/0", "the store is closed"), FULL]

    with pytest.raises(ChangesNotStored):
        drain(Away(), timeout_seconds=0.2)
    assert reader.read() == End(reasons=("c/0: the store is closed", "c/0: full"))


def test_slow_progress_keeps_the_watchdog_waiting(drain, caplog):
    class Slow(Changes):
        seen: int | None = None

        @property
        def dirty_bytes(self) -> int:
            self.seen = left = self.left
            return left

        @dirty_bytes.setter
        def dirty_bytes(self, left: int) -> None:
            self.left = left

        def drain(self) -> list:
            self.seen = None
            for _ in range(5):
                wait_until(lambda: self.seen == self.left)
                self.left -= 20
            wait_until(lambda: self.seen == 0)
            return []

    with caplog.at_level(logging.INFO):
        watchdog = drain(Slow(), report_seconds=0.0)
    # At the beginning, and whenever there was less.
    assert watchdog.postponed == 1 + 5
    told = [record.message for record in caplog.records if "bytes left" in record.message]
    assert "storing changes: 40 bytes left" in told


def test_asked_again_it_tries_once_more(drain, asked_again):
    changes = Changes(*[(0, [FULL])] * 9)
    with pytest.raises(ChangesNotStored):
        drain(changes, pause_seconds=60, attempts=9)
    assert len(changes.attempts) == 7


@pytest.fixture
def asked_again():
    """SIGTERM comes when the log says that the drain will try again, before it pauses."""

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "is tried again" in record.getMessage():
                os.kill(os.getpid(), signal.SIGTERM)

    asking = Asking()
    logger = logging.getLogger("zarrfs.daemon.life.drain")
    logger.addHandler(asking)
    yield
    logger.removeHandler(asking)


def test_the_state_can_be_seen_meanwhile(drain, caplog):
    class Slow(Changes):
        def drain(self) -> list:
            os.kill(os.getpid(), signal.SIGUSR1)
            wait_until(lambda: "the state" in caplog.text)
            return []

    with caplog.at_level(logging.INFO):
        drain(Slow())


def test_a_report_outlives_its_daemon(report):
    reader = EndReader(report.path)
    report.tell(End(storing=True, left=7))
    assert reader.read() == End(storing=True, left=7)
    report.tell(End(reasons=("no " + "x" * 100,)))
    report.tell(End(stored=True))
    assert reader.read() == End(stored=True)
    reader.close()


@pytest.mark.parametrize("blocking", [True, False], ids=["all block", "a thread does not"])
def test_signals_are_kept(signals, blocking):
    """Whichever thread the kernel chooses."""
    standing_by, over = threading.Event(), threading.Event()

    def stand_by() -> None:
        if not blocking:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        standing_by.set()
        over.wait(20)

    thread = threading.Thread(target=stand_by)
    thread.start()
    try:
        assert standing_by.wait(20)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert signals.wait(30) == signal.SIGUSR1
        assert signals.wait(0.01) is None
    finally:
        over.set()
        thread.join()
    assert signals.kept() == []
