"""Writing to S3 through a network that loses answers, and to services that know less."""

import http.client
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from tests.waiting import wait_until
from zarrfs.errors import StoreAccessDenied, StoreConflict, StoreError, StoreTimeout
from zarrfs.store.base import ANY
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.remote.s3.upload_body import UploadBody, slices

pytestmark = pytest.mark.timeout(60)

FAILURE = b"<Error><Code>%s</Code><Message>no</Message></Error>"


@dataclass
class Proxy:
    """Stands before the service.

    before : called with each request; returns true where it has answered itself.
    lose : called with each request once it is served; true: nobody learns of it.
    drop_headers : does not pass these on, lower case.
    under_way : requests that have come and are not over.
    """

    target: str
    before: Callable[[BaseHTTPRequestHandler], bool] = lambda handler: False
    lose: Callable[[BaseHTTPRequestHandler], bool] = lambda handler: False
    drop_headers: frozenset[str] = frozenset()
    requests: list[str] = field(default_factory=list)
    url: str = ""
    under_way: set[object] = field(default_factory=set)

    def count(self, method: str) -> int:
        return sum(request.startswith(method) for request in self.requests)


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, *_: object) -> None:
            pass

        def serve(self) -> None:
            proxy.under_way.add(self)
            try:
                self.pass_on()
            finally:
                proxy.under_way.remove(self)

        def pass_on(self) -> None:
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            proxy.requests.append(f"{self.command} {self.path}")
            if proxy.before(self):
                return
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in proxy.drop_headers
            }
            connection = http.client.HTTPConnection(urlsplit(proxy.target).netloc, timeout=30)
            connection.request(self.command, self.path, self.body, headers)
            reply = connection.getresponse()
            data = reply.read()
            connection.close()
            if proxy.lose(self):
                self.close_connection = True
                return
            self.answer(reply.status, data, dict(reply.getheaders()))

        def answer(self, status: int, data: bytes = b"", headers: dict[str, str] = {}) -> None:  # noqa: B006
            self.send_response_only(status)
            length = str(len(data))
            for name, value in headers.items():
                if name.lower() == "content-length":
                    length = value if self.command == "HEAD" else length
                elif name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve  # noqa: N815

    return Handler


@pytest.fixture
def proxy(s3_endpoint: str) -> Iterator[Proxy]:
    made = Proxy(s3_endpoint)
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    listener.daemon_threads = True
    listener.handle_error = lambda *_: None  # clients that have gone
    made.url = f"http://127.0.0.1:{listener.server_address[1]}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield made
    listener.shutdown()
    listener.server_close()
    thread.join(10)


@pytest.fixture
def store(opening, proxy: Proxy, s3_bucket, s3_options, quick):
    """The service, as seen through the proxy."""
    config = StoreConfig(
        storage_options={**s3_options, "endpoint_url": proxy.url},
        retry=quick,
        requests=RequestConfig(timeout_s=30),
    )
    return opening(f"s3://{s3_bucket[0]}/store", config)


def first_times(times: int, method: str, key: str = "/x") -> Callable[[object], bool]:
    left = times

    def matches(handler) -> bool:
        nonlocal left
        if left and handler.command == method and urlsplit(handler.path).path.endswith(key):
            left -= 1
            return True
        return False

    return matches


def answering(
    matches: Callable[[object], bool], status: int, code: bytes
) -> Callable[[object], bool]:
    """Has the proxy answer some requests with a failure."""

    def refuse(handler) -> bool:
        if matches(handler):
            handler.answer(status, FAILURE % code)
            return True
        return False

    return refuse


def read(store, key: str) -> bytes | None:
    blob = store.get(key, limit=1 << 30)
    return None if blob is None else bytes(blob.data)


@pytest.mark.parametrize("times", [1, 3])
def test_a_put_whose_answer_was_lost_is_no_conflict_with_itself(store, proxy, times):
    store.put("first", [b"of all"], expected=None)
    for data, lost in ((b"one", True), (b"two", True), (b"three", False)):
        before = store.info("x")
        expected = None if before is None else before.generation
        proxy.lose = first_times(times if lost else 0, "PUT")
        proxy.requests.clear()
        info = store.put("x", [data], expected=expected)
        assert proxy.count("PUT") > 1 or not lost
        assert store.info("x").generation == info.generation
        assert read(store, "x") == data


def test_a_put_whose_answer_was_lost_to_another_writer_is_a_conflict(store, proxy, s3_bucket):
    """It had landed and was replaced: only reading again tells what is true now."""
    name, client = s3_bucket
    first = store.put("x", [b"one"], expected=None)

    once = first_times(1, "PUT")

    def lose(handler) -> bool:
        if not once(handler):
            return False
        client.put_object(Bucket=name, Key="store/x", Body=b"neighbour")
        return True

    proxy.lose = lose
    with pytest.raises(StoreConflict):
        store.put("x", [b"two"], expected=first.generation)
    assert read(store, "x") == b"neighbour"


def test_a_large_put_that_is_refused_leaves_no_parts(store, s3_bucket):
    name, client = s3_bucket
    store.put("x", [b"small"], expected=None)
    with pytest.raises(StoreConflict):
        store.put("x", [os.urandom(17 << 20)], expected=None)
    assert client.list_multipart_uploads(Bucket=name).get("Uploads", []) == []
    assert read(store, "x") == b"small"


@pytest.mark.parametrize("attempts", [1, 3], ids=["aborted at once", "aborted at last"])
def test_a_large_put_of_which_a_part_fails_leaves_no_parts(store, proxy, s3_bucket, attempts):
    name, client = s3_bucket
    fails = first_times(attempts - 1, "DELETE")

    def refuse(handler) -> bool:
        if "partNumber=2" in handler.path:
            handler.answer(403, FAILURE % b"AccessDenied")
            return True
        if fails(handler):
            handler.answer(500, FAILURE % b"InternalError")
            return True
        return False

    proxy.before = refuse
    with pytest.raises(StoreAccessDenied):
        store.put("x", [bytes(20 << 20)], expected=None)
    assert proxy.count("DELETE") >= attempts
    assert client.list_multipart_uploads(Bucket=name).get("Uploads", []) == []
    assert store.info("x") is None


def test_a_delete_whose_answer_was_lost(store, proxy):
    info = store.put("x", [b"one"], expected=None)
    proxy.lose = first_times(1, "DELETE")
    store.delete("x", expected=info.generation)
    assert store.info("x") is None


@pytest.mark.parametrize(
    ("status", "code"), [(409, b"ConditionalRequestConflict"), (503, b"SlowDown")]
)
def test_what_passes_is_tried_again(store, proxy, status, code):
    proxy.before = answering(first_times(2, "PUT"), status, code)
    store.put("x", [b"one"], expected=None)
    assert read(store, "x") == b"one"


def test_a_service_that_ignores_conditions_is_found_out(store, proxy, s3_bucket):
    name, client = s3_bucket
    proxy.drop_headers = frozenset({"if-match", "if-none-match"})
    with pytest.raises(StoreConflict):
        store.put("x", [b"zero"], expected=("of nothing",))
    listed = client.list_objects_v2(Bucket=name)
    assert listed["KeyCount"] == 0
    first = store.put("x", [b"one"], expected=None)
    second = store.put("x", [b"two"], expected=first.generation)
    for stale in (None, first.generation):
        with pytest.raises(StoreConflict):
            store.put("x", [b"three"], expected=stale)
    with pytest.raises(StoreConflict):
        store.delete("x", expected=first.generation)

    def race(i: int) -> bool:
        try:
            store.put("x", [b"%d" % i], expected=second.generation)
        except StoreConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(race, range(8))) == 1


def test_a_service_that_refuses_conditions_is_found_out(store, proxy):
    def conditional(handler) -> bool:
        return "If-Match" in handler.headers or "If-None-Match" in handler.headers

    proxy.before = answering(conditional, 501, b"NotImplemented")
    first = store.put("x", [b"one"], expected=None)
    store.put("x", [b"two"], expected=first.generation)
    with pytest.raises(StoreConflict):
        store.put("x", [b"three"], expected=first.generation)


def test_a_service_that_deletes_without_conditions(store, proxy):
    def conditional(handler) -> bool:
        return handler.command == "DELETE" and "If-Match" in handler.headers

    proxy.before = answering(conditional, 501, b"NotImplemented")
    info = store.put("x", [b"one"], expected=None)
    store.delete("x", expected=info.generation)
    assert store.info("x") is None


def test_a_service_that_does_not_answer(store, proxy, s3_bucket, s3_options, quick):
    config = StoreConfig(
        storage_options={**s3_options, "endpoint_url": proxy.url},
        retry=quick._replace(deadline_s=1),
        requests=RequestConfig(timeout_s=0.5),
    )
    impatient = open_store(f"s3://{s3_bucket[0]}/store", config)
    first = store.put("x", [b"one"], expected=None)
    over = threading.Event()
    proxy.before = lambda handler: over.wait(20) and False
    with pytest.raises(StoreError, match="does not answer"):
        impatient.put("x", [b"two"], expected=first.generation)
    over.set()
    impatient.close()
    # The requests that hung arrive now, if at all; whatever they do, what is put next
    # with the state that was read is what stays.
    while True:
        generation = store.info("x").generation
        try:
            store.put("x", [b"three"], expected=generation)
        except StoreConflict:
            continue
        break
    wait_until(lambda: not proxy.under_way)
    assert read(store, "x") == b"three"


def test_a_missing_bucket_is_an_error(opening, s3_options, quick):
    config = StoreConfig(storage_options=s3_options, retry=quick)
    store = opening("s3://no-such-bucket-anywhere/store", config)
    for expected in (ANY, None):
        with pytest.raises(StoreError, match="bucket") as caught:
            store.put("x", [b"one"], expected=expected)
        assert not isinstance(caught.value, StoreConflict | StoreTimeout)


def test_what_is_forbidden_to_write_is_never_missing(opening, proxy, s3_bucket, s3_options, quick):
    config = StoreConfig(
        storage_options={**s3_options, "endpoint_url": proxy.url},
        retry=quick,
    )
    store = opening(f"s3://{s3_bucket[0]}/store", config)
    info = store.put("x", [b"one"], expected=None)
    writes = ("PUT", "DELETE")
    proxy.before = answering(lambda handler: handler.command in writes, 403, b"AccessDenied")
    for expected in (ANY, info.generation):
        with pytest.raises(StoreAccessDenied):
            store.put("x", [b"two"], expected=expected)
        with pytest.raises(StoreAccessDenied):
            store.delete("x", expected=expected)


def test_slices():
    parts = [b"abc", b"", bytearray(b"defgh"), memoryview(bytes(16)).cast("q")]
    whole = b"abcdefgh" + bytes(16)
    for length in (1, 2, 3, 7, 24, 100):
        pieces = slices(parts, length)
        assert b"".join(b"".join(piece) for piece in pieces) == whole
        assert {sum(map(len, piece)) for piece in pieces[:-1]} <= {length}
    assert slices([b"", memoryview(b"")], 3) == []


def test_a_body_is_a_file():
    calls = []
    views = [memoryview(b"abc"), memoryview(b""), memoryview(b"defgh")]
    body = UploadBody(views, lambda: calls.append(1))
    assert (body.seek(0, os.SEEK_END), body.tell(), body.read(5)) == (8, 8, b"")
    body.seek(0)
    parts = []
    while data := body.read(2):
        parts.append(data)
    assert b"".join(parts) == b"abcdefgh"
    assert (body.seek(4), body.read()) == (4, b"efgh")
    assert (body.seek(-3, os.SEEK_END), body.read()) == (5, b"fgh")
    assert calls
    assert UploadBody([], lambda: None).read(5) == b""
