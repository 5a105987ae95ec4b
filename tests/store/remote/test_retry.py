"""Deadlines and retries, on a store that fails as it is told."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from tests.conftest import run_python
from tests.store.conftest import Clock
from tests.waiting import wait_until
from zarrfs.errors import (
    StoreAccessDenied,
    StoreConflict,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)
from zarrfs.store.base import (
    ANY,
    Blob,
    ByteRange,
    ObjectInfo,
    Store,
    StoreTraits,
)
from zarrfs.store.workers import current_call
from zarrfs.store.wrappers.retry import Retrier, RetryConfig, RetryStore

pytestmark = pytest.mark.usefixtures("clock")

CONFIG = RetryConfig(
    attempt_timeout_s=0.1,
    deadline_s=20,
    first_pause_s=0.001,
    max_pause_s=0.004,
    max_abandoned=3,
)
INFO = ObjectInfo(3, None, ("generation",))


@dataclass
class ScriptedStore(Store):
    """Does what ``script`` says, call by call, and afterwards succeeds."""

    traits = StoreTraits(near=False)

    script: list[Callable[[], object]] = field(default_factory=list)
    names: int = 3
    url: str = "scripted://"
    calls: int = 0
    listed: int = 0
    closed: bool = False
    read_only: str | None = None
    written: list[tuple[object, ...]] = field(default_factory=list)

    def _step(self) -> None:
        self.calls += 1
        if self.script:
            self.script.pop(0)()

    def get(self, key: str, *, limit: int) -> Blob | None:
        self._step()
        return Blob(b"abc", INFO)

    def get_ranges(self, key: str, ranges: list[ByteRange]) -> list[Blob] | None:
        self._step()
        return [Blob(b"a", INFO) for _ in ranges]

    def info(self, key: str) -> ObjectInfo | None:
        self._step()
        return INFO

    def list_dir(self, prefix: str) -> Iterator[str]:
        self._step()
        for i in range(self.names):
            self.listed += 1
            yield str(i)

    def put(self, key: str, parts: list[bytes], *, expected: object) -> ObjectInfo:
        self._step()
        self.written.append(("put", key, b"".join(parts), expected))
        return INFO

    def delete(self, key: str, *, expected: object) -> None:
        self._step()
        self.written.append(("delete", key, expected))

    def leftovers(self, *, remove: bool) -> list[str]:
        return ["left over"]

    def close(self) -> None:
        self.closed = True


def fail(error: Exception) -> Callable[[], object]:
    def step() -> object:
        raise error

    return step


FLAP = fail(StoreUnavailable("x", "is busy"))


@dataclass
class Hang:
    """A step that hangs until the test is over, or for longer than an attempt may."""

    clock: Clock
    over: threading.Event = field(default_factory=threading.Event)

    def __call__(self) -> None:
        self.clock.advance(CONFIG.attempt_timeout_s)
        self.over.wait(60)


@pytest.fixture
def hang(clock) -> Iterator[Hang]:
    hang = Hang(clock)
    yield hang
    hang.over.set()


@pytest.fixture
def stores() -> Iterator[Callable[..., tuple[ScriptedStore, RetryStore]]]:
    """``stores(script, **config)``: a store that follows it, and one that tries again."""
    with ExitStack() as stack:

        def make(script: list[Callable[[], object]], **config: object):
            inner = ScriptedStore(script)
            store = RetryStore(inner, Retrier(CONFIG._replace(**config)))
            stack.callback(store.close)
            return inner, store

        yield make


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get("x", limit=9).data == b"abc",
        lambda store: len(store.get_ranges("x", [ByteRange(0, 1)])) == 1,
        lambda store: store.info("x") == INFO,
        lambda store: list(store.list_dir("x")) == ["0", "1", "2"],
    ],
)
def test_what_fails_for_a_while_succeeds_in_the_end(stores, ask):
    inner, store = stores([FLAP] * 40)
    assert ask(store)
    assert inner.calls == 41


@pytest.mark.parametrize("kind", [StoreError, StoreAccessDenied, StoreConflict])
def test_a_lasting_error_is_not_tried_again(stores, kind):
    inner, store = stores([fail(kind("x", "no"))])
    with pytest.raises(kind):
        store.info("x")
    assert inner.calls == 1


def test_a_foreign_error_is_passed_on(stores):
    _, store = stores([fail(ZeroDivisionError())])
    with pytest.raises(ZeroDivisionError):
        store.info("x")


def test_an_attempt_that_hangs_is_given_up_and_made_again(stores, hang):
    inner, store = stores([hang])
    assert store.info("x") == INFO
    assert inner.calls == 2


def test_a_store_that_always_hangs_is_a_timeout(stores, hang):
    inner, store = stores([hang] * 3, deadline_s=0.15)
    with pytest.raises(StoreTimeout, match="does not answer"):
        store.info("x")
    assert inner.calls == 2


def test_the_deadline_ends_the_retries(stores, clock):
    def fail_late() -> None:
        clock.advance(0.05)
        FLAP()

    inner, store = stores([fail_late] * 100, deadline_s=0.2)
    with pytest.raises(StoreTimeout, match=r"gave up after 0.2 s"):
        store.info("x")
    assert inner.calls == 4


def test_hanging_calls_are_bounded_and_recover(stores, hang):
    inner, store = stores([hang] * 3, deadline_s=0.1)
    for _ in range(3):
        with pytest.raises(StoreTimeout, match="does not answer"):
            store.info("x")
    with pytest.raises(StoreTimeout, match="3 earlier requests still hang"):
        store.info("x")
    assert inner.calls == 3
    hang.over.set()
    for _ in range(1000):
        try:
            assert store.info("x") == INFO
            break
        except StoreTimeout:
            time.sleep(0.01)
    else:
        pytest.fail("the store did not recover")


def test_progress_puts_the_timeout_off(stores, clock):
    def slow() -> None:
        progress = current_call().progress
        for _ in range(4):
            clock.advance(0.06)
            progress()
            # The caller looks at the clock when its time seems to be over.
            wait_until(lambda enough=clock.looks + 2: clock.looks >= enough)

    inner, store = stores([slow])
    assert store.info("x") == INFO
    assert inner.calls == 1


def test_the_first_name_comes_before_the_last_is_known(stores):
    inner, store = stores([])
    inner.names = 100_000
    names = store.list_dir("")
    assert next(names) == "0"
    assert inner.listed <= 10
    assert sum(1 for _ in names) == 99_999


def test_a_listing_that_breaks_off_is_an_error_and_not_an_end():
    class Breaking(ScriptedStore):
        def list_dir(self, prefix: str) -> Iterator[str]:
            yield from map(str, range(20))
            raise StoreUnavailable(prefix, "is busy")

    store = RetryStore(Breaking(), Retrier(CONFIG))
    names = store.list_dir("")
    assert next(names) == "0"
    with pytest.raises(StoreError, match="broke off"):
        list(names)
    store.close()


@pytest.mark.timeout(60)
def test_a_hanging_call_does_not_keep_the_process():
    code = """
import threading
from zarrfs.store.wrappers.retry import Retrier, RetryConfig
try:
    Retrier(RetryConfig(deadline_s=0.1)).call("x", threading.Event().wait)
except Exception as error:
    print(error)
"""
    done = run_python("-c", code, check=True)
    assert done.stdout == "x: gave up after 0.1 s: the store does not answer\n"


def put(store: RetryStore, data: bytes = b"abc") -> ObjectInfo:
    return store.put("x", [data], expected=None)


def test_writing_is_passed_on(stores):
    inner, store = stores([FLAP] * 2)
    assert store.read_only is None
    assert put(store) == INFO
    store.delete("x", expected=INFO.generation)
    assert inner.written == [
        ("put", "x", b"abc", None),
        ("delete", "x", INFO.generation),
    ]
    assert store.leftovers(remove=True) == ["left over"]


def test_a_write_that_was_given_up_does_not_undo_the_next_one(stores, hang):
    inner, store = stores([hang], deadline_s=0.1)
    with pytest.raises(StoreTimeout, match="does not answer"):
        put(store, b"old")
    with pytest.raises(StoreTimeout, match="still under way"):
        put(store, b"new")
    with pytest.raises(StoreTimeout, match="still under way"):
        store.delete("x", expected=ANY)
    store.put("y", [b"other"], expected=ANY)
    assert inner.written == [("put", "y", b"other", ANY)]
    hang.over.set()
    for _ in range(1000):
        try:
            put(store, b"new")
            break
        except StoreTimeout:
            time.sleep(0.01)
    assert [entry[2] for entry in inner.written[1:]] == [b"old", b"new"]


def test_a_write_waits_for_one_that_was_given_up(stores, hang):
    inner, store = stores([hang], deadline_s=0.1)
    with pytest.raises(StoreTimeout):
        put(store, b"old")
    patient = RetryStore(inner, Retrier(CONFIG))
    patient._orphans = store._orphans
    threading.Timer(0.2, hang.over.set).start()
    put(patient, b"new")
    assert [entry[2] for entry in inner.written] == [b"old", b"new"]
    patient.close()


def test_attempts_of_one_write_may_overlap(stores, hang):
    inner, store = stores([hang])
    assert put(store) == INFO
    assert inner.calls == 2
