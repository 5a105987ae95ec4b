"""Stores that are a round trip away, busy or broken: what is asked for, and how often."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tests.remote_server import Fault, Link, RemoteServer
from tests.waiting import wait_until
from zarrfs.errors import StoreConflict, StoreError, StoreTimeout
from zarrfs.store.base import ANY, Blob, ByteRange, Put, Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.ranges import side_by_side
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.wrappers import retry
from zarrfs.store.wrappers.retry import RetryConfig

KEYS = [f"c/{number}" for number in range(8)]
MANY = [f"c/{number}" for number in range(120)]
QUICK = RetryConfig(attempt_timeout_s=30, deadline_s=100, first_pause_s=0.01, max_pause_s=0.05)


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with RemoteServer(Link(latency_s=0.02)) as server:
        server.make_bucket("b", {f"a/{key}": key.encode() * 100 for key in MANY})
        yield server


@pytest.fixture(params=["s3", "s3 by s3fs", "http"])
def opened(request, server) -> Iterator[Callable[..., Store]]:
    """Opens the bucket, with some of `RequestConfig` changed; closes it."""
    stores = []
    options = {} if request.param == "http" else server.s3_options()
    if request.param == "s3 by s3fs":
        # Which obstore cannot be told.
        options["config_kwargs"] = {"signature_version": "s3v4"}

    def open_one(retry: RetryConfig = QUICK, **requests) -> Store:
        config = StoreConfig(
            storage_options=options,
            retry=retry,
            requests=RequestConfig(**requests),
        )
        url = f"{server.url}/b/a" if request.param == "http" else "s3://b/a"
        stores.append(open_store(url, config))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def read(store: Store, keys: list[str]) -> list[bytes | None]:
    found = store.get_many(keys, limit=10_000)
    return [bytes(blob.data) if isinstance(blob, Blob) else blob for blob in found]


def expected(keys: list[str]) -> list[bytes]:
    return [key.encode() * 100 for key in keys]


def test_several_objects_are_asked_for_at_once(server, opened):
    store = opened()
    read(store, KEYS[:1])
    server.counts.reset()
    server.together = 8
    assert read(store, KEYS) == expected(KEYS)
    assert server.counts.requests == {"GET object": 8}
    assert server.counts.most_in_flight == 8


def test_requests_in_flight_are_limited(server, opened):
    store = opened(concurrency=4)
    server.counts.reset()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(read, [store] * 3, [MANY] * 3))
    assert server.counts.requests["GET object"] == 3 * len(MANY)
    # A reader that finds all threads busy sends its own requests.
    assert 4 <= server.counts.most_in_flight <= 4 + 2


def test_what_failed_of_several_objects_is_asked_for_again_together(server, opened):
    store = opened()
    read(store, KEYS[:1])
    server.counts.reset()
    refused = set()

    def busy_once(method: str, target: str) -> Fault | None:
        if method != "GET" or target in refused or target.endswith(("/0", "/5")):
            return None
        refused.add(target)
        return Fault.BUSY

    server.plan = busy_once
    assert read(store, KEYS) == expected(KEYS)
    assert server.counts.requests == {"GET object": 8 + 6}


def test_what_keeps_failing_of_several_objects_is_told_of_each(server, opened, monkeypatch):
    store = opened(QUICK._replace(deadline_s=40))
    read(store, KEYS[:1])
    refused = itertools.count()
    seconds = [0]

    def plan(_method: str, target: str) -> Fault | None:
        if not target.endswith("/c/3"):
            return None
        # Each refusal takes a second, and nothing else does.
        seconds[0] = next(refused)
        return Fault.BUSY

    clock = SimpleNamespace(monotonic=lambda: float(seconds[0]), time=time.time)
    monkeypatch.setattr(retry, "time", clock)
    server.plan = plan
    found = list(store.get_many(KEYS, limit=10_000))
    assert isinstance(found.pop(3), StoreTimeout)
    assert all(isinstance(blob, Blob) for blob in found)


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.DROP])
def test_one_layer_asks_again(server, opened, monkeypatch, fault):
    """What the libraries below would ask again is asked again by nobody but us."""
    store = opened()
    read(store, KEYS[:1])
    asked_again = []
    pause = retry._Attempts.pause

    def note(attempts: retry._Attempts, failure: StoreError, made: int) -> float | None:
        asked_again.append(failure)
        return pause(attempts, failure, made)

    monkeypatch.setattr(retry._Attempts, "pause", note)
    faults = [fault] * 6
    server.counts.reset()
    server.plan = lambda _method, _target: faults.pop() if faults else None
    assert bytes(store.get("c/0", limit=1000).data) == expected(["c/0"])[0]
    assert server.counts.total == 7
    # Over a connection that was kept open, aiohttp sends a GET once more.
    assert len(asked_again) == 6 or (fault is Fault.DROP and len(asked_again) >= 3)


def test_one_failed_range_is_asked_for_again_alone(server, opened):
    """The other ranges of the object are not."""
    server.put("b", "a/large", bytes(range(256)) * 4096)
    store = opened(max_gap=0)
    ranges = [ByteRange(64 * 1024 * number, 1000) for number in range(16)]
    store.get_ranges("large", ranges[:1])
    numbers = itertools.count()
    server.counts.reset()
    server.plan = lambda _m, _t: Fault.BUSY if next(numbers) in (3, 7, 17) else None
    blobs = store.get_ranges("large", ranges)
    assert [bytes(blob.data) for blob in blobs] == [(bytes(range(256)) * 4)[:1000]] * 16
    assert server.counts.requests == {"GET object": 16 + 3}


def test_one_failed_part_of_a_large_object_is_asked_for_again_alone(server, opened):
    data = bytes(range(256)) * 4096
    server.put("b", "a/large", data)
    store = opened(max_request=1 << 16)
    store.get_ranges("large", [ByteRange(0, 10)])
    numbers = itertools.count()
    server.counts.reset()
    server.plan = lambda _m, _t: Fault.TORN if next(numbers) in (0, 5) else None
    assert bytes(store.get("large", limit=1 << 21).data) == data
    assert server.counts.requests == {"GET object": 16 + 2}


def test_a_pause_keeps_no_other_request_from_being_sent(server, opened, monkeypatch):
    """Pauses pass together, however many requests are refused, and no place in flight is lost."""
    store = opened(concurrency=4)
    read(store, KEYS[:1])
    all_asked = threading.Event()
    clock = SimpleNamespace(
        # Pauses end when all others were sent.
        monotonic=lambda: 1000.0 if all_asked.is_set() else 0.0,
        sleep=lambda _seconds: time.sleep(0.01),
    )
    monkeypatch.setattr(side_by_side, "time", clock)
    asked: set[str] = set()
    refused: list[str] = []
    before_repeats: list[int] = []

    def busy_once(_method: str, target: str) -> Fault | None:
        if target in asked:
            before_repeats.append(len(asked))
            return None
        asked.add(target)
        if len(asked) == len(MANY):
            all_asked.set()
        if len(refused) == 8:
            return None
        refused.append(target)
        return Fault.BUSY

    server.counts.reset()
    server.plan = busy_once
    assert read(store, MANY) == expected(MANY)
    assert before_repeats == [len(MANY)] * 8
    assert server.counts.total == len(MANY) + 8


def test_one_failed_part_of_an_upload_is_sent_again_alone(opening, server):
    server.link = Link()
    store = opening("s3://b/new", StoreConfig(server.s3_options(), retry=QUICK))
    data = bytes(range(256)) * (40 << 12)
    store.put("first", [b"x"], expected=ANY)
    parts = []

    def plan(method: str, target: str) -> Fault | None:
        if "partNumber" not in target:
            return None
        parts.append(target)
        return Fault.BUSY if parts.count(target) == 1 and "partNumber=2" in target else None

    server.plan = plan
    store.put("large", [data], expected=ANY)
    assert len(parts) == 3 + 1
    assert bytes(server.objects.get("b", "new/large").data) == data


@pytest.mark.parametrize("kind", ["get", "get_many", "put"])
def test_a_server_that_is_away_for_a_while_is_waited_for(opening, server, kind):
    """However many attempts that takes."""
    store = opening("s3://b/a", StoreConfig(server.s3_options(), retry=QUICK))
    read(store, KEYS[:1])
    server.counts.reset()
    server.plan = lambda _m, _t: Fault.DROP if server.counts.total < 60 else None
    if kind == "put":
        store.put("c/0", [b"new"], expected=ANY)
    elif kind == "get":
        assert bytes(store.get("c/7", limit=1000).data) == expected(["c/7"])[0]
    else:
        assert read(store, KEYS) == expected(KEYS)
    assert server.counts.total >= 60


def test_the_first_retry_is_told_and_so_is_the_end_of_the_trouble(server, opened, caplog):
    store = opened()
    with caplog.at_level(logging.INFO):
        faults = [Fault.BUSY, Fault.BUSY]
        server.plan = lambda _method, _target: faults.pop() if faults else None
        assert store.get("c/0", limit=1000) is not None
    told = [record.message for record in caplog.records if "store" in record.message]
    assert len(told) == 2
    assert "in trouble" in told[0]
    assert "answers again" in told[1]


def test_a_reply_of_a_byte_a_second_is_a_timeout(server, opened):
    opened()  # imports what opening takes, which the deadline below is too short for
    store = opened(RetryConfig(deadline_s=0.5), timeout_s=0.3)
    server.plan = lambda method, _target: Fault.DRIP if method == "GET" else None
    with pytest.raises(StoreTimeout, match="gave up"):
        store.get("c/0", limit=1000)


def test_a_consumer_that_stops_early_leaves_nothing_behind(server, opened):
    store = opened()
    server.plan = lambda _method, target: Fault.HANG if target.endswith("/c/1") else None
    found = store.get_many(KEYS, limit=1000)
    assert bytes(next(found).data) == expected(KEYS)[0]
    found.close()
    server.plan = lambda _method, _target: None
    assert read(store, KEYS) == expected(KEYS)


def test_nobody_waits_for_a_store_that_was_given_up(server, opened):
    store = opened()
    read(store, KEYS[:1])
    server.plan = lambda _method, _target: Fault.HANG
    asks = (
        lambda: store.get("c/1", limit=1000),
        lambda: list(store.get_many(KEYS, limit=1000)) and store.info("c/1"),
    )
    server.counts.reset()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(ask) for ask in asks]
        wait_until(lambda: server.counts.in_flight >= 9)
        store.give_up()
        for asking in waiting:
            with pytest.raises(StoreError, match="the store is closed"):
                asking.result()


def test_several_objects_are_stored_at_once(opening, server):
    store = opening("s3://b/new", StoreConfig(server.s3_options(), retry=QUICK))
    store.put("c/first", [b"x"], expected=None)
    server.counts.reset()
    server.together = 8
    puts = [Put(key, [key.encode()], ANY) for key in KEYS]
    assert all(info.size == 3 for info in store.put_many(puts))
    assert server.counts.requests == {"PUT object": 8}
    assert server.counts.most_in_flight == 8
    assert read_all(store, KEYS) == [key.encode() for key in KEYS]


def read_all(store: Store, keys: list[str]) -> list[bytes]:
    return [bytes(store.get(key, limit=100).data) for key in keys]


def test_a_conflict_about_a_large_object_does_not_fetch_all_of_it(opening, server):
    """It is compared with the bytes to be put, up to the first piece that differs."""
    server.link = Link()
    server.put("b", "a/large", bytes(20 << 20))
    store = opening("s3://b/a", StoreConfig(server.s3_options(), retry=QUICK))
    expected = store.info("large").generation
    server.put("b", "a/large", b"\1" * (20 << 20))
    server.counts.reset()
    with pytest.raises(StoreConflict):
        store.put("large", [b"\2" * (20 << 20)], expected=expected)
    assert server.counts.sent < 9 << 20


def test_an_empty_object_that_grows_while_it_is_asked_for_is_read(opening, server):
    """The answer to a range of an empty object is 416; the size is asked for after it."""
    server.put("b", "a/marks", b"")

    def grow(method: str, _target: str) -> None:
        if method == "HEAD":
            server.objects.put("b", "a/marks", b"1.0")

    server.plan = grow
    store = opening("s3://b/a", StoreConfig(server.s3_options(), retry=QUICK))
    assert bytes(store.get("marks", limit=100).data) == b"1.0"


def test_no_update_is_lost_among_writers_of_one_object(server):
    """Each adds its marks, with a conditional put; replies are lost, too.

    A writer that lost the reply to a put and was overtaken since is told of a conflict, and merges
    again. So a mark may be there already, and a number that is counted up could count it twice.
    """
    from tests.remote_server import random_faults

    server.link = Link()
    server.put("b", "a/marks", b"")
    server.plan = random_faults(1, busy=0.05, drop=0.05)
    rounds, threads = 10, 4

    def add(writer: int) -> None:
        store = open_store("s3://b/a", StoreConfig(server.s3_options(), retry=QUICK))
        try:
            for number in range(rounds):
                while True:
                    blob = store.get("marks", limit=10_000)
                    marks = {*bytes(blob.data).split(), b"%d.%d" % (writer, number)}
                    data = b" ".join(sorted(marks))
                    try:
                        store.put("marks", [data], expected=blob.info.generation)
                    except StoreConflict:
                        continue
                    break
        finally:
            store.close()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, range(threads)))
    server.plan = lambda _method, _target: None
    assert set(server.objects.get("b", "a/marks").data.split()) == {
        b"%d.%d" % (writer, number) for writer in range(threads) for number in range(rounds)
    }
