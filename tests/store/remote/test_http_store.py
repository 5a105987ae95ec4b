"""Which requests an HTTP store sends, and what it makes of odd servers."""

import gzip
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import pytest

from zarrfs.errors import StoreAccessDenied, StoreError, StoreTimeout, UsageError
from zarrfs.store.base import ByteRange
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.wrappers.retry import RetryConfig

DATA = bytes(i % 251 for i in range(10_000))
RETRY = RetryConfig(first_pause_s=0.001, max_pause_s=0.01)


@pytest.fixture
def opened(http_server):
    """Opens stores on the server, with some of `RequestConfig` changed; closes them."""
    stores = []

    def open_one(retry: RetryConfig = RETRY, query: str = "", **requests):
        config = StoreConfig(retry=retry, requests=RequestConfig(**requests))
        stores.append(open_store(f"{http_server.url}/root{query}", config))
        return stores[-1]

    http_server.objects["/root/x"] = DATA
    yield open_one
    for store in stores:
        store.close()


def begin(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    """Sends the status and the headers."""
    handler.send_response(status)
    for name, said in headers.items():
        handler.send_header(name.replace("_", "-"), said)
    handler.end_headers()


def asked(server) -> list[tuple[str, str | None]]:
    return [(method, wanted) for method, _, wanted in server.requests]


def read(store, *offsets: int) -> None:
    """Four bytes at each offset, and whether they are right."""
    blobs = store.get_ranges("x", [ByteRange(offset, 4) for offset in offsets])
    assert [bytes(blob.data) for blob in blobs] == [DATA[o : o + 4] for o in offsets]


def test_a_small_object_takes_one_request(http_server, opened):
    assert bytes(opened().get("x", limit=20_000).data) == DATA
    assert asked(http_server) == [("GET", "bytes=0-19999")]


def test_a_large_object_takes_requests_of_the_configured_size(http_server, opened):
    assert bytes(opened(max_request=4000).get("x", limit=20_000).data) == DATA
    assert sorted(asked(http_server)) == [
        ("GET", "bytes=0-4499"),
        ("GET", "bytes=4500-8499"),
        ("GET", "bytes=8500-9999"),
    ]


def test_neighbouring_ranges_share_a_request(http_server, opened):
    read(opened(max_gap=100), 500, 0, 104, 3000, 3050)
    assert sorted(asked(http_server)) == [
        ("GET", "bytes=0-107"),
        ("GET", "bytes=3000-3053"),
        ("GET", "bytes=500-503"),
    ]


def test_the_query_of_the_url_goes_with_every_request(http_server, opened):
    store = opened(query="?sig=a%2Fb&x=1")
    assert store.get("x", limit=20_000) is not None
    assert http_server.requests[0][1] == "/root/x?sig=a%2Fb&x=1"
    assert store.url == f"{http_server.url}/root"


def test_a_server_that_ignores_ranges_sends_the_object_once(http_server, opened):
    http_server.honours_ranges = False
    store = opened(max_gap=0)
    # The first client cannot use such a reply; it is not asked again.
    read(store, 0, 100, 9000, 500)
    assert len(http_server.requests) == 2
    read(store, 0, 100, 9000, 500)
    assert len(http_server.requests) == 3


def test_a_large_object_is_not_taken_whole_for_a_part_of_it(http_server, opened):
    http_server.honours_ranges = False
    with pytest.raises(StoreError, match="ignores ranges"):
        read(opened(max_unranged=9_999), 0)
    read(opened(max_unranged=10_000), 0)


def test_no_more_than_the_limit_is_asked_for(http_server, opened):
    with pytest.raises(StoreError, match="has 10000 bytes, more than the 10 allowed"):
        opened().get("x", limit=10)
    assert asked(http_server) == [("GET", "bytes=0-9")]


def endless(server, status: int, **headers: str) -> list[int]:
    """Has the server send bodies without end; how many bytes of each it has sent."""
    sent: list[int] = []

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        begin(handler, status, **headers, Connection="close")
        sent.append(0)
        with suppress(OSError):
            while sent[-1] < 1 << 28:
                sent[-1] += handler.wfile.write(bytes(1 << 16))
        handler.close_connection = True
        return True

    server.intercept = answer
    return sent


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.get("x", limit=1 << 20),
        lambda store: store.get_ranges("x", [ByteRange(0, 4)]),
    ],
)
def test_an_endless_reply_is_cut_off(http_server, opened, ask):
    sent = endless(http_server, 200)
    store = opened(max_unranged=1 << 20)
    with pytest.raises(StoreError, match="more bytes than the 1048576 allowed"):
        ask(store)
    assert sum(sent) < 1 << 28


def test_a_part_that_never_ends_is_cut_off(http_server, opened, clock):
    """Its header promises four bytes, but nothing limits the body."""
    modified = "Sun, 29 Nov 2026 10:00:00 GMT"
    sent = endless(http_server, 206, Content_Range="bytes 0-3/1000", Last_Modified=modified)
    http_server.intercept = clock.slowed(http_server.intercept)
    with pytest.raises(StoreError, match="more bytes than it announced"):
        opened().get_ranges("x", [ByteRange(0, 4)])
    assert max(sent) < 1 << 28


def test_a_server_without_head_lengths_and_etags(http_server, opened):
    http_server.answers_head = http_server.etags = http_server.sends_length = False
    store = opened()
    assert store.info("x").size == len(DATA)
    assert store.info("none") is None
    http_server.objects["/root/empty"] = b""
    assert store.info("empty").size == 0
    read(store, 0, 9996)
    http_server.honours_ranges = False
    assert bytes(opened().get("x", limit=20_000).data) == DATA
    read(opened(), 0, 9996)


def compressed(handler: BaseHTTPRequestHandler) -> bool:
    """Replies with all of the object in gzip, whatever range is asked for."""
    body = gzip.compress(DATA)
    begin(handler, 200, Content_Encoding="gzip", Content_Length=str(len(body)))
    handler.wfile.write(body)
    return True


def test_a_compressed_reply_is_decompressed(http_server, opened):
    http_server.intercept = compressed
    assert bytes(opened().get("x", limit=20_000).data) == DATA
    read(opened(), 0, 9996)
    with pytest.raises(StoreError, match="allowed"):
        opened().get("x", limit=9_999)


def test_a_large_object_of_which_a_later_reply_is_compressed(http_server, opened):
    """That reply has all of it, and does not say how long it is."""

    def intercept(handler: BaseHTTPRequestHandler) -> bool:
        return not handler.headers["Range"].startswith("bytes=0-") and compressed(handler)

    http_server.etags = False
    http_server.intercept = intercept
    assert bytes(opened(max_request=4000).get("x", limit=20_000).data) == DATA


def after_requests(server, count: int, change) -> None:
    """Calls ``change`` before each of the first ``count`` replies but the very first."""

    def intercept(handler: BaseHTTPRequestHandler) -> bool:
        if 1 < len(server.requests) <= count + 1:
            change(len(server.requests))
        return False

    server.intercept = intercept


def test_ranges_of_an_object_replaced_meanwhile_are_of_one_state(http_server, opened):
    def change(n: int) -> None:
        http_server.objects["/root/x"] = bytes([n]) * 5000

    after_requests(http_server, 3, change)
    blobs = opened(max_gap=0).get_ranges("x", [ByteRange(0, 4), ByteRange(1000, 4)])
    assert bytes(blobs[0].data) == bytes(blobs[1].data) == bytes([4]) * 4
    assert blobs[0].info == blobs[1].info
    assert blobs[0].info.size == 5000


def test_an_immutable_store_does_not_compare(http_server, opened):
    def change(n: int) -> None:
        http_server.objects["/root/x"] = bytes([n]) * len(DATA)

    after_requests(http_server, 200, change)
    blobs = opened(max_gap=0, immutable=True).get_ranges("x", [ByteRange(0, 4), ByteRange(999, 4)])
    assert len(blobs) == 2


def replies(server, *statuses: int) -> None:
    """The first requests are refused with ``statuses``."""
    left = list(statuses)

    def intercept(handler: BaseHTTPRequestHandler) -> bool:
        if left:
            handler.refuse(left.pop(0))
            return True
        return False

    server.intercept = intercept


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_status_is_asked_again(http_server, opened, status):
    replies(http_server, status, status, status)
    read(opened(), 0)
    assert len(http_server.requests) == 4


def test_a_lasting_failure_tells_its_status(http_server, opened, clock):
    replies(http_server, *[503] * 10**5)
    http_server.intercept = clock.slowed(http_server.intercept)
    with pytest.raises(StoreTimeout, match="503"):
        read(opened(query="?token=hunter2"), 0)
    assert len(http_server.requests) > 2


def test_a_service_that_asks_to_wait_is_not_asked_before(http_server, opened):
    broken(http_server, 1, lambda handler: handler.refuse(503, Retry_After="3600"))
    with pytest.raises(StoreTimeout, match="503"):
        read(opened(query="?token=hunter2"), 0)
    assert len(http_server.requests) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_access_is_told_at_once(http_server, opened, status):
    replies(http_server, *[status] * 9)
    with pytest.raises(StoreAccessDenied) as caught:
        opened(query="?token=hunter2").get("x", limit=9)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(http_server.requests) == 1


def test_gone_is_missing_and_other_refusals_are_errors(http_server, opened):
    replies(http_server, 410, 418)
    store = opened()
    assert store.get("x", limit=9) is None
    with pytest.raises(StoreError, match="418"):
        store.get("x", limit=9)
    assert len(http_server.requests) == 2


def broken(server, times: int, send) -> None:
    """The first ``times`` requests get what ``send`` sends, then the connection ends."""
    left = times

    def intercept(handler: BaseHTTPRequestHandler) -> bool:
        nonlocal left
        if not left:
            return False
        left -= 1
        send(handler)
        handler.close_connection = True
        return True

    server.intercept = intercept


def half(handler: BaseHTTPRequestHandler) -> None:
    begin(handler, 206, Content_Range=f"bytes 0-3/{len(DATA)}", Content_Length="4")
    handler.wfile.write(DATA[:2])


def silence(handler: BaseHTTPRequestHandler) -> None:
    pass


@pytest.mark.parametrize("send", [half, silence])
def test_a_connection_that_breaks_is_asked_again(http_server, opened, clock, send):
    broken(http_server, 3, send)
    read(opened(), 0)
    broken(http_server, 10**6, clock.slowed(send))
    with pytest.raises(StoreError):
        read(opened(), 0)


@pytest.mark.parametrize(
    "header",
    ["bytes 1-4/10000", "bytes 0-2/10000", "bytes 0-3/*", "lines 0-3/10000", "nonsense", ""],
)
def test_a_part_that_was_not_asked_for_is_refused(http_server, opened, header):
    def send(handler: BaseHTTPRequestHandler) -> None:
        part = {"Content_Range": header} if header else {}
        begin(handler, 206, **part, Content_Length="4")
        handler.wfile.write(b"evil")

    broken(http_server, 10**6, send)
    with pytest.raises(StoreError, match=r"other bytes|which part"):
        read(opened(), 0)


def test_a_server_that_is_silent_is_a_timeout(http_server, opened, clock):
    over = threading.Event()
    broken(http_server, 10**6, clock.slowed(lambda _: over.wait(60)))
    with pytest.raises(StoreTimeout, match="does not answer"):
        opened(timeout_s=0.2).get("x", limit=9)
    assert len(http_server.requests) > 1
    over.set()


@pytest.mark.parametrize(("status", "times"), [(206, 1), (200, 2)])
def test_a_slow_but_steady_reply_is_no_timeout(http_server, opened, status, times):
    over = threading.Event()

    def send(handler: BaseHTTPRequestHandler) -> None:
        begin(handler, status, Content_Range="bytes 0-19/20", Content_Length="20")
        for i in range(20):
            handler.wfile.write(bytes([i]))
            over.wait(0.12)

    broken(http_server, times, send)
    # All of it takes longer than any pause may, and no pause of a busy machine takes so long.
    retry = RetryConfig(attempt_timeout_s=2.2, deadline_s=60)
    store = opened(retry, timeout_s=2, slowest=4)
    assert bytes(store.get("x", limit=99).data) == bytes(range(20))


def test_what_one_host_was_told_is_left_to_the_session(http_server, opened):
    def agent() -> str:
        agents.clear()
        read(store, 0)
        return agents[0]

    agents: list[str] = []

    def note(handler) -> bool:
        agents.append(handler.headers["User-Agent"])
        return False

    http_server.intercept = note
    store = opened()
    assert agent().startswith("object_store")
    for options in (
        {"headers": {"X-Api-Key": "secret"}},
        {"cookies": {"token": "secret"}},
        {"client_kwargs": {"headers": {"X-Session-Key": "secret"}}},
    ):
        config = StoreConfig(storage_options=options, retry=RETRY)
        store = open_store(f"{http_server.url}/root", config)
        assert "aiohttp" in agent()
        store.close()
    store = opened(query="?signature=secret")
    assert "aiohttp" in agent()
    url = http_server.url.replace("//", "//someone:secret@")
    store = open_store(f"{url}/root", StoreConfig(retry=RETRY))
    assert "aiohttp" in agent()
    store.close()


def test_a_proxy_of_the_environment_is_asked_only_if_that_is_said(http_server, monkeypatch):
    monkeypatch.setenv("http_proxy", http_server.url)
    monkeypatch.setenv("no_proxy", "")
    http_server.objects["/root/x"] = DATA
    options = {"client_kwargs": {"trust_env": True}}
    for said in (False, True):
        http_server.requests.clear()
        config = StoreConfig(storage_options=options if said else {}, retry=RETRY)
        store = open_store(f"{http_server.url}/root", config)
        assert store.get("x", limit=len(DATA)).data == DATA
        store.close()
        ((_, path, _),) = http_server.requests
        assert path == (f"{http_server.url}/root/x" if said else "/root/x")


@pytest.mark.parametrize("elsewhere", [True, False])
def test_headers_go_to_no_other_host(http_server, elsewhere):
    seen = []

    def answer(handler):
        own = handler.path.startswith("/root/")
        if own:
            host = "localhost" if elsewhere else "127.0.0.1"
            place = f"http://{host}:{http_server.port}/other{handler.path}"
            handler.refuse(307, Location=place, Set_Cookie="session=very-secret")
        else:
            seen.append(dict(handler.headers))
        return own

    http_server.objects["/other/root/x"] = DATA
    http_server.intercept = answer
    options = {
        "headers": {"X-Api-Key": "very-secret", "Authorization": "Bearer very-secret"},
        "cookies": {"token": "very-secret"},
        "client_kwargs": {"headers": {"X-Session-Key": "very-secret"}},
    }
    store = open_store(f"{http_server.url}/root", StoreConfig(storage_options=options, retry=RETRY))
    assert store.get("x", limit=len(DATA)).data == DATA
    assert store.get_ranges("x", [ByteRange(1, 2)])[0].data == DATA[1:3]
    store.close()
    assert seen
    assert all(("very-secret" in str(headers)) != elsewhere for headers in seen)


def test_a_redirect_in_a_circle_comes_to_an_end(opening, http_server):
    http_server.intercept = lambda handler: handler.refuse(302, Location=handler.path) or True
    store = opening(f"{http_server.url}/root", StoreConfig(retry=RETRY))
    with pytest.raises(StoreError, match="again and again"):
        store.get("x", limit=9)


@pytest.mark.parametrize("query", ["?sig=a%2Fb%3D&x=%7Ey+z", "?token=a/b=c&&d", "?a=b%20c"])
def test_the_query_is_sent_as_it_was_typed(http_server, opened, query):
    read(opened(query=query), 0)
    assert http_server.requests[-1][1] == f"/root/x{query}"


@pytest.mark.parametrize("cache", ["filecache", "blockcache"])
def test_a_cache_of_fsspec_that_finds_nothing_is_refused(http_server, cache):
    with pytest.raises(UsageError, match="disk_cache"):
        open_store(f"{cache}::{http_server.url}/root", StoreConfig(retry=RETRY))


def test_a_large_object_replaced_meanwhile_is_of_one_state(http_server, opened):
    def change(n: int) -> None:
        http_server.objects["/root/x"] = bytes([n]) * (9_000 + n)

    after_requests(http_server, 4, change)
    blob = opened(max_request=3000).get("x", limit=20_000)
    assert len(blob.data) == blob.info.size
    assert len(set(bytes(blob.data))) == 1
