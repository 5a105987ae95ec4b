"""The watchdog counts looks, and tells time by a clock: both are given here, and no test waits."""

import threading
import time
from types import SimpleNamespace

import pytest

from zarrfs.errors import MountError
from zarrfs.fuse import watchdog as module
from zarrfs.fuse.watchdog import EXIT_STATUS, Watchdog, WatchdogConfig

CONFIG = WatchdogConfig(stall_seconds=60.0, ticks=30, rescue_seconds=20.0)
INTERVAL = 2.0


class Scene:
    """A watchdog whose time passes only while it waits.

    during : called in each wait with its number from 1, before the watchdog looks.
    pauses : of all waits until it ended the process, or until `LOOKS` of them.
    happened : what the watchdog did, in order.
    """

    LOOKS = 200

    def __init__(self, monkeypatch, *, mounted=True, abort=lambda: None, config=CONFIG):
        self.now = 1000.0
        self.pauses: list[float] = []
        self.happened: list[object] = []
        self.during = lambda look: None
        self.watchdog = Watchdog(
            config,
            dump=lambda: "all threads",
            flush=lambda: self.happened.append("flush"),
        )
        stopped = self.watchdog._stopped
        self.watchdog._stopped = SimpleNamespace(
            set=stopped.set, wait=lambda seconds: self.wait(stopped, seconds)
        )
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "os", SimpleNamespace(_exit=self.end))

        def aborted() -> None:
            self.happened.append("abort")
            abort()

        self.connection = SimpleNamespace(path="/mnt", mounted=mounted, abort=aborted)
        monkeypatch.setattr(
            module, "unmount", lambda path, *, lazy: self.happened.append((path, lazy))
        )

    def wait(self, stopped: threading.Event, seconds: float) -> bool:
        if stopped.is_set() or self.ended or len(self.pauses) == self.LOOKS:
            return True
        self.pauses.append(seconds)
        self.now += seconds
        self.during(len(self.pauses))
        return stopped.is_set()

    def end(self, status: int) -> None:
        self.happened.append(status)

    def run(self, during=lambda look: None) -> int:
        """How many looks the watchdog took."""
        self.during = during
        self.watchdog.start(self.connection)
        for thread in threading.enumerate():
            if thread.name == "watchdog":
                thread.join(20)
                assert not thread.is_alive()
        return len(self.pauses)

    @property
    def ended(self) -> bool:
        return EXIT_STATUS in self.happened


@pytest.fixture
def scene(monkeypatch):
    return Scene(monkeypatch)


def test_a_loop_that_never_runs_is_a_stall_after_all_ticks(scene, caplog):
    # The first look finds the count of beats; each later one misses a beat.
    assert scene.run() == 1 + CONFIG.ticks
    assert scene.pauses == [INTERVAL] * (1 + CONFIG.ticks)
    assert scene.happened == ["abort", ("/mnt", True), "flush", EXIT_STATUS]
    assert "has not answered for 60 s; freeing /mnt\nall threads" in caplog.text


@pytest.mark.parametrize("last", [1, 2, 29, 75])
def test_looks_without_a_beat_are_counted_in_a_row(scene, last):
    looks = scene.run(lambda look: scene.watchdog.beat() if look <= last else None)
    assert looks == last + CONFIG.ticks


def test_one_beat_too_late(scene):
    def seldom(look: int) -> None:
        if look % (CONFIG.ticks + 1) == 1:
            scene.watchdog.beat()

    assert scene.run(seldom) == CONFIG.ticks + 1
    assert scene.ended


def test_time_in_which_the_process_was_stopped_does_not_count(scene):
    def stopped(look: int) -> None:
        scene.now += 3600.0
        if look % 20 == 0:
            scene.watchdog.beat()

    assert scene.run(stopped) == scene.LOOKS
    assert not scene.ended


def test_the_end_has_its_time_and_beats_do_not_prolong_it(scene, caplog):
    scene.watchdog.expect_end(7.0)
    scene.watchdog.expect_end(100.0)
    assert scene.run(lambda _: scene.watchdog.beat()) == 4
    assert scene.pauses == [2.0, 2.0, 2.0, 1.0]
    assert "did not end in time" in caplog.text
    assert scene.ended


def test_an_end_that_is_expected_later_is_looked_for_at_once(scene):
    def during(look: int) -> None:
        if look == 3:
            scene.watchdog.expect_end(1.5)

    assert scene.run(during) == 4
    assert scene.pauses == [2.0, 2.0, 2.0, 1.5]
    assert scene.ended


def test_progress_postpones_the_end(scene):
    scene.watchdog.expect_end(3.0)

    def progress(look: int) -> None:
        if look <= 5:
            scene.watchdog.postpone_end(5.0)

    assert scene.run(progress) == 5 + 3
    assert scene.pauses == [2.0] * 7 + [1.0]


def test_missed_beats_do_not_end_what_makes_progress(scene):
    scene.watchdog.postpone_end(1000.0)
    assert scene.run() == scene.LOOKS
    assert not scene.ended


def test_a_watchdog_that_is_stopped_ends_nothing(scene):
    def during(look: int) -> None:
        if look == CONFIG.ticks:
            scene.watchdog._stopped.set()

    assert scene.run(during) == CONFIG.ticks
    scene.watchdog.stop()
    assert scene.happened == []


@pytest.mark.parametrize("error", [MountError("no such connection"), ZeroDivisionError("a bug")])
def test_the_process_ends_whatever_fails(monkeypatch, caplog, error):
    def fail() -> None:
        raise error

    scene = Scene(monkeypatch, abort=fail)
    rescued = threading.Event()
    scene.watchdog.rescue_with(rescued.set)
    scene.run()
    assert scene.happened == ["abort", "flush", EXIT_STATUS]
    assert rescued.is_set()
    assert str(error) in caplog.text


def test_changes_are_rescued_before_the_process_ends(scene):
    def rescue() -> None:
        time.sleep(0.02)  # so that one which nobody waits for comes last
        scene.happened.append("rescue")

    scene.watchdog.rescue_with(rescue)
    scene.run()
    assert scene.happened == ["abort", ("/mnt", True), "rescue", "flush", EXIT_STATUS]


def test_a_rescue_that_hangs_is_given_up(monkeypatch):
    scene = Scene(monkeypatch, config=CONFIG._replace(rescue_seconds=0.01))
    over = threading.Event()
    scene.watchdog.rescue_with(lambda: over.wait(20))
    scene.run()
    assert scene.happened[-2:] == ["flush", EXIT_STATUS]
    over.set()
