"""Stores of every kind, filled and changed behind their backs by the tests."""

import hashlib
import itertools
import os
import tempfile
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import fsspec
import pytest

from tests.remote_server import RemoteServer
from tests.store.stand_ins import apache, azurite, nginx, python_server, sftp, wsgidav
from zarrfs.store import workers
from zarrfs.store.base import Store
from zarrfs.store.local import local_root
from zarrfs.store.local.local import LocalStore
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.requests import RequestConfig
from zarrfs.store.wrappers import retry
from zarrfs.store.wrappers.retry import RetryConfig

QUICK = RetryConfig(attempt_timeout_s=30, deadline_s=100, first_pause_s=0.01, max_pause_s=0.05)
SECRET = "hunter2-very-secret"


class Clock:
    """Goes on as the test says, and a little for each look of the retries.

    So a test has as much time on a machine that is busy. Only how long a caller waits until it
    looks at the clock again is real.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        self.looks = 0
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds

    def slowed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, a few calls of which take as long as an operation may."""

        def slow(*arguments: Any, **keywords: Any) -> Any:
            self.advance(20)
            return function(*arguments, **keywords)

        return slow

    def read(self) -> float:
        self.looks += 1
        return self.now

    def read_between_attempts(self) -> float:
        self.advance(0.001)
        return self.now


@dataclass
class Harness:
    """A store, and how to change what it holds without it."""

    kind: str
    store: Store
    put: Callable[[str, bytes], None]
    delete: Callable[[str], None]
    lists: bool = True


@dataclass
class HttpServer:
    """An HTTP server of ``objects``, which it serves by their path."""

    objects: dict[str, bytes] = field(default_factory=dict)
    honours_ranges: bool = True
    answers_head: bool = True
    sends_length: bool = True
    etags: bool = True
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    # Called with the handler before each reply; true means it has replied itself.
    intercept: Callable[[BaseHTTPRequestHandler], bool] | None = None
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def _handler(server: HttpServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        timeout = 30

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            wanted = self.headers.get("Range")
            server.requests.append((self.command, self.path, wanted))
            if server.intercept is not None and server.intercept(self):
                return
            data = server.objects.get(unquote(urlsplit(self.path).path))
            if not with_body and not server.answers_head:
                self.refuse(405)
                return
            if data is None:
                self.refuse(404)
                return
            self.reply(data, wanted if server.honours_ranges else None, with_body)

        def refuse(self, status: int, **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def reply(self, data: bytes, wanted: str | None, with_body: bool) -> None:
            start, stop = 0, len(data)
            if wanted is not None:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                if first:
                    start, stop = int(first), min(int(last) + 1 if last else stop, stop)
                else:
                    start = max(0, stop - int(last))
                if start >= len(data):
                    self.refuse(416, Content_Range=f"bytes */{len(data)}")
                    return
            self.send_response(200 if wanted is None else 206)
            if wanted is not None:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
            if server.etags:
                self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
            if server.sends_length:
                self.send_header("Content-Length", str(stop - start))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            if with_body:
                self.wfile.write(data[start:stop])

    return Handler


@pytest.fixture
def opening() -> Iterator[Callable[..., Store]]:
    """``opening(source, config)``: the store, which is closed after the test."""
    with ExitStack() as stack:
        yield lambda *given: stack.enter_context(closing(open_store(*given)))


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    with serve_http() as server:
        yield server


@contextmanager
def serve_http() -> Iterator[HttpServer]:
    server = HttpServer()
    listener = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    listener.daemon_threads = True
    server.port = listener.server_address[1]
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    listener.shutdown()
    listener.server_close()
    thread.join(10)


def _locked(lock: Any, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def answer(response: Any) -> Any:
        with lock:
            return method(response)

    return answer


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A stand-in for S3 on the loopback interface."""
    for package in ("s3fs", "moto.server", "flask_cors"):
        pytest.importorskip(package, reason=f"the S3 tests need {package}")
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    # It looks at the condition first and writes then: of two at once both might win.
    one_at_a_time = threading.RLock()
    for name in ("put_object", "delete_object"):
        setattr(S3Response, name, _locked(one_at_a_time, getattr(S3Response, name)))
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def _s3_options(endpoint: str, **more: object) -> dict[str, object]:
    return {
        "key": "someone",
        "secret": SECRET,
        "endpoint_url": endpoint,
        "client_kwargs": {"region_name": "us-east-1"},
        **more,
    }


@pytest.fixture(scope="session")
def s3_client(s3_endpoint: str) -> Iterator[Any]:
    """Of boto3, which makes as many objects for one as all the tests."""
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        aws_access_key_id="someone",
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    yield client
    client.close()


@pytest.fixture
def s3_bucket(s3_client: Any) -> tuple[str, Any]:
    """A new bucket: ``(name, boto3 client)``."""
    name = f"bucket-{uuid.uuid4().hex}"
    s3_client.create_bucket(Bucket=name)
    return name, s3_client


def _local(tmp_path: Path) -> Harness:
    root = tmp_path / "store"
    root.mkdir()

    def put(key: str, data: bytes) -> None:
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = tmp_path / uuid.uuid4().hex
        temporary.write_bytes(data)
        temporary.rename(path)

    def delete(key: str) -> None:
        (root / key).unlink()

    return Harness("local", open_store(str(root), StoreConfig()), put, delete)


def _memory() -> Harness:
    root = f"memory://{uuid.uuid4().hex}/store"
    filesystem = fsspec.filesystem("memory")
    store = open_store(root, StoreConfig(retry=QUICK))
    return Harness(
        "memory",
        store,
        lambda key, data: filesystem.pipe_file(f"{root}/{key}", data),
        lambda key: filesystem.rm_file(f"{root}/{key}"),
    )


def _zip(tmp_path: Path) -> Harness:
    path, members = tmp_path / "store.zip", dict[str, bytes]()

    def write() -> None:
        temporary = tmp_path / uuid.uuid4().hex
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, data in members.items():
                archive.writestr(f"inner/{name}", data)
        temporary.rename(path)

    def put(key: str, data: bytes) -> None:
        members[key] = data
        write()

    def delete(key: str) -> None:
        del members[key]
        write()

    write()
    store = open_store(f"zip://inner::file://{path}", StoreConfig(retry=QUICK))
    return Harness("zip", store, put, delete)


def _http(server: HttpServer, *, honours_ranges: bool) -> Harness:
    server.honours_ranges = honours_ranges
    url = f"http://someone:{SECRET}@127.0.0.1:{server.port}/some/store?token={SECRET}"
    config = StoreConfig(retry=QUICK, requests=RequestConfig(max_gap=16, max_request=1000))

    def put(key: str, data: bytes) -> None:
        server.objects[f"/some/store/{key}"] = data

    def delete(key: str) -> None:
        del server.objects[f"/some/store/{key}"]

    kind = "http" if honours_ranges else "http_unranged"
    return Harness(kind, open_store(url, config), put, delete, lists=False)


_SMALL = RequestConfig(max_gap=16, max_request=1000)


def _s3(
    endpoint: str, bucket: Any, *, versions: bool = False, requests: RequestConfig = _SMALL
) -> Harness:
    name, client = bucket
    config = StoreConfig(
        storage_options=_s3_options(endpoint, **({"version_aware": True} if versions else {})),
        retry=QUICK,
        requests=requests,
    )
    return Harness(
        "s3_versions" if versions else "s3",
        open_store(f"s3://{name}/store", config),
        lambda key, data: client.put_object(Bucket=name, Key=f"store/{key}", Body=data),
        lambda key: client.delete_object(Bucket=name, Key=f"store/{key}"),
    )


@pytest.fixture(scope="session")
def azure_connection() -> Iterator[str]:
    """The connection string of a stand-in for Azure's blob service."""
    pytest.importorskip("adlfs", reason="the tests of Azure need adlfs")
    with azurite() as connection:
        yield connection


def _azure(connection: str, requests: RequestConfig) -> Harness:
    from azure.storage.blob import ContainerClient

    name = f"container-{uuid.uuid4().hex}"
    client = ContainerClient.from_connection_string(connection, name)
    client.create_container()
    config = StoreConfig(
        storage_options={"connection_string": connection}, retry=QUICK, requests=requests
    )
    return Harness(
        "azure",
        open_store(f"az://{name}/store", config),
        lambda key, data: client.upload_blob(f"store/{key}", data, overwrite=True),
        lambda key: client.delete_blob(f"store/{key}"),
    )


@pytest.fixture(scope="session")
def google_server() -> Iterator[RemoteServer]:
    """A stand-in for Google's service, of the tests' own."""
    pytest.importorskip("gcsfs", reason="the tests of Google Cloud Storage need gcsfs")
    with RemoteServer() as server:
        yield server


def _google(server: RemoteServer, requests: RequestConfig) -> Harness:
    name = f"bucket-{uuid.uuid4().hex}"
    server.make_bucket(name)
    config = StoreConfig(
        storage_options={"endpoint_url": server.url, "token": "anon"},
        retry=QUICK,
        requests=requests,
    )
    return Harness(
        "google",
        open_store(f"gs://{name}/store", config),
        lambda key, data: server.put(name, f"store/{key}", data),
        lambda key: server.delete(name, f"store/{key}"),
    )


FILE_SERVERS = {
    "http_python": python_server,
    "http_wsgidav": wsgidav,
    "http_nginx": nginx,
    "http_apache": apache,
    "sftp": sftp,
}


@pytest.fixture(scope="session")
def file_server() -> Iterator[Callable[[str], tuple[str, Path]]]:
    """Maps a kind of server of files to its URL and the directory that it serves."""
    running: dict[str, tuple[str, Path]] = {}
    with ExitStack() as stack:
        # Directories of pytest are closed to the other users as whom nginx and Apache run.
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zarrfs-served-")))
        parent.chmod(0o755)

        def served(kind: str) -> tuple[str, Path]:
            if kind not in running:
                root = parent / kind / "root"
                root.mkdir(parents=True, exist_ok=True)
                running[kind] = stack.enter_context(FILE_SERVERS[kind](root)), root
            return running[kind]

        yield served


def _served_files(kind: str, server: tuple[str, Path]) -> Harness:
    url, root = server
    name = uuid.uuid4().hex
    (root / name).mkdir()
    seconds = itertools.count()

    def put(key: str, data: bytes) -> None:
        path = root / name / key
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = root / uuid.uuid4().hex
        temporary.write_bytes(data)
        # Some of them tell two states of a size apart only by the second of the change.
        os.utime(temporary, times=(0, 1e9 + next(seconds)))
        temporary.rename(path)

    def delete(key: str) -> None:
        (root / name / key).unlink()

    lists = kind == "sftp"
    login = {"username": "someone", "password": SECRET, "look_for_keys": False}
    config = StoreConfig(storage_options=login if lists else {}, retry=QUICK, requests=_SMALL)
    return Harness(kind, open_store(f"{url}/{name}", config), put, delete, lists=lists)


KINDS = (
    "local",
    "local_checked",
    "memory",
    "zip",
    "http",
    "http_unranged",
    "s3",
    "s3_versions",
    "google",
    "azure",
    *FILE_SERVERS,
)


@pytest.fixture(params=KINDS)
def harness(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Harness]:
    """Each kind of store in turn."""
    made = _make(request.param, request, tmp_path, monkeypatch)
    yield made
    made.store.close()


WRITABLE_KINDS = ("local", "local_checked", "memory", "s3", "google", "azure")


@pytest.fixture(params=WRITABLE_KINDS)
def writable(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Harness]:
    """Each kind of store that can be written to in turn."""
    made = _make(request.param, request, tmp_path, monkeypatch, RequestConfig())
    yield made
    made.store.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory for a local store."""
    root = tmp_path / "root"
    (root / "dir").mkdir(parents=True)
    (root / "dir" / "x").write_bytes(b"old")
    return root


@pytest.fixture(params=["openat2", "checked"])
def store(
    root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LocalStore]:
    """A local store, by each way of opening its files."""
    if request.param == "checked":
        monkeypatch.setattr(local_root, "openat2_works", lambda fd: False)
    made = LocalStore(root)
    yield made
    made.close()


def _make(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    requests: RequestConfig = _SMALL,
) -> Harness:
    if kind == "local_checked":
        monkeypatch.setattr(local_root, "openat2_works", lambda fd: False)
    if kind.startswith("local"):
        return _local(tmp_path)
    if kind == "memory":
        return _memory()
    if kind == "zip":
        return _zip(tmp_path)
    if kind == "azure":
        return _azure(request.getfixturevalue("azure_connection"), requests)
    if kind == "google":
        return _google(request.getfixturevalue("google_server"), requests)
    if kind in FILE_SERVERS:
        return _served_files(kind, request.getfixturevalue("file_server")(kind))
    if kind.startswith("http"):
        server = request.getfixturevalue("http_server")
        return _http(server, honours_ranges=kind == "http")
    endpoint = request.getfixturevalue("s3_endpoint")
    bucket = request.getfixturevalue("s3_bucket")
    return _s3(endpoint, bucket, versions=kind == "s3_versions", requests=requests)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=clock.read))
    between = SimpleNamespace(monotonic=clock.read_between_attempts, time=time.time)
    monkeypatch.setattr(retry, "time", between)
    return clock


@pytest.fixture
def quick() -> RetryConfig:
    """Retries that take no time."""
    return QUICK


@pytest.fixture
def s3_options(s3_endpoint: str) -> dict[str, object]:
    """Storage options for the stand-in, a secret among them."""
    return _s3_options(s3_endpoint)


@pytest.fixture
def open_fds() -> Callable[[], int]:
    return lambda: len(os.listdir("/proc/self/fd"))
