"""What the several kinds of fsspec file systems make of change, refusal and secrets."""

import base64
import hashlib
import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import repeat
from urllib.parse import urlsplit

import fsspec
import fsspec.core
import pytest

from tests.store.conftest import serve_http
from zarrfs import bounds
from zarrfs.errors import (
    StoreAccessDenied,
    StoreConflict,
    StoreError,
    StoreReadOnly,
    UsageError,
)
from zarrfs.store.base import ANY, ByteRange
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.filesystems import open_filesystem
from zarrfs.store.remote.plain_reader import PlainReader
from zarrfs.store.remote.references.elsewhere import is_near
from zarrfs.store.remote.requests import RequestConfig

DATA = bytes(i % 251 for i in range(5000))


@pytest.fixture
def made(monkeypatch):
    """The file systems that fsspec has made for stores, in order."""
    filesystems = []
    make = fsspec.core.url_to_fs

    def noted(url, **options):
        found = make(url, **options)
        filesystems.append(found[0])
        return found

    monkeypatch.setattr(fsspec.core, "url_to_fs", noted)
    return filesystems


@pytest.fixture
def memory(quick, made):
    """A store in memory, and its file system."""
    root = f"memory://{uuid.uuid4().hex}"
    store = open_store(root, StoreConfig(retry=quick, requests=RequestConfig(max_gap=0)))
    (filesystem,) = made
    yield store, filesystem, root
    store.close()


def test_a_file_system_that_ignores_ranges_is_cut(memory, monkeypatch):
    store, filesystem, root = memory
    filesystem.pipe_file(f"{root}/x", DATA)
    read = filesystem.cat_file
    monkeypatch.setattr(filesystem, "cat_file", lambda path, start=None, end=None: read(path))
    blobs = store.get_ranges("x", [ByteRange(7, 4), ByteRange(1000, 4)])
    assert [bytes(blob.data) for blob in blobs] == [DATA[7:11], DATA[1000:1004]]


def test_a_short_reply_is_an_error(memory, monkeypatch, clock):
    store, filesystem, root = memory
    filesystem.pipe_file(f"{root}/x", DATA)
    monkeypatch.setattr(filesystem, "cat_file", clock.slowed(lambda *_args, **_keywords: b"abc"))
    with pytest.raises(StoreError, match="3 bytes came where 4 were asked for"):
        store.get_ranges("x", [ByteRange(7, 4)])


def test_an_object_of_unknown_size(memory, monkeypatch):
    store, filesystem, root = memory
    filesystem.pipe_file(f"{root}/x", DATA)
    info = filesystem.info
    monkeypatch.setattr(filesystem, "info", lambda path: {**info(path), "size": None})
    blob = store.get("x", limit=5000)
    assert (blob.data, blob.info.size) == (DATA, 5000)
    assert bytes(store.get_ranges("x", [ByteRange(-4, 4)])[0].data) == DATA[-4:]
    with pytest.raises(StoreError, match="more bytes than the 4999 allowed"):
        store.get("x", limit=4999)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), StoreAccessDenied),
        (ValueError("no"), StoreError),
        (KeyError("other"), StoreError),
        (OSError("no"), StoreError),
        (MemoryError(), StoreError),
    ],
)
def test_a_foreign_error_is_converted(memory, monkeypatch, clock, error, kind):
    store, filesystem, root = memory

    def refuse(*args, **kwargs):
        raise error

    filesystem.pipe_file(f"{root}/x", DATA)
    monkeypatch.setattr(filesystem, "cat_file", clock.slowed(refuse))
    with pytest.raises(kind) as caught:
        store.get("x", limit=5000)
    assert type(error).__name__ not in str(caught.value)


def test_references(opening, http_server, quick, tmp_path):
    http_server.objects["/data"] = DATA
    references = {
        "zarr.json": "{}",
        "c/0": [f"{http_server.url}/data", 100, 50],
        "c/1": [f"{http_server.url}/gone", 100, 50],
    }
    (tmp_path / "refs.json").write_text(json.dumps({"version": 1, "refs": references}))
    store = opening(f"reference://::file://{tmp_path}/refs.json", StoreConfig(retry=quick))
    assert store.get("zarr.json", limit=10).data == b"{}"
    assert store.get("c/0", limit=50).data == DATA[100:150]
    assert store.get_ranges("c/0", [ByteRange(-5, 5)])[0].data == DATA[145:150]
    assert store.get("c/2", limit=50) is None
    # What is referred to and not there is no missing chunk: that would read as fill values.
    with pytest.raises(StoreError):
        store.get("c/1", limit=50)


@pytest.mark.parametrize("first", [True, False], ids=["first", "behind another"])
@pytest.mark.parametrize("form", ["file://{}", "local://{}", "{}", "simplecache::file://{}"])
@pytest.mark.parametrize("chained", [True, False], ids=["chained", "option"])
def test_references_from_elsewhere_do_not_reach_this_machine(
    http_server, quick, tmp_path, form, first, chained
):
    """Whoever wrote a document on the network must not choose what of this machine is shown."""
    (tmp_path / "private").write_bytes(DATA)
    http_server.objects["/data"] = DATA[::-1]
    private = {"c/0": [form.format(tmp_path / "private"), 0, 50]}
    other = {"c/1": [f"{http_server.url}/data", 0, 50]}
    refs = {"zarr.json": "{}", **(private | other if first else other | private)}
    http_server.objects["/refs.json"] = json.dumps({"version": 1, "refs": refs}).encode()
    url = f"{http_server.url}/refs.json"
    options = {} if chained else {"fo": url, "target_protocol": "http"}
    source = f"reference::{url}" if chained else "reference://"
    config = StoreConfig(retry=quick, storage_options=options)
    try:
        store = open_store(source, config)
    except UsageError:
        return  # what wraps other file systems cannot even be opened
    assert store.get("zarr.json", limit=10).data == b"{}"
    with pytest.raises(StoreError):
        store.get("c/0", limit=50)
    with pytest.raises(StoreError):
        store.get_ranges("c/0", [ByteRange(0, 10)])
    if not first:
        assert store.get("c/1", limit=50).data == DATA[::-1][:50]
    store.close()


@pytest.mark.parametrize("place", ["localhost:{}", "127.0.0.1:{}", "0.0.0.0:{}"])
@pytest.mark.parametrize("way", ["open", "target", "redirect"])
def test_references_from_elsewhere_do_not_reach_services_of_this_machine(
    http_server, quick, place, way
):
    """The user named the document's own server, and no other service of this machine."""
    http_server.objects["/data"] = DATA[::-1]
    source = f"reference::{http_server.url}/refs.json"

    def opened(**options):
        return closing(open_store(source, StoreConfig(retry=quick, storage_options=options)))

    with serve_http() as private:
        private.objects["/secret"] = DATA
        url = f"http://{place.format(private.port)}/secret"
        if way == "redirect":
            http_server.intercept = lambda handler: (
                handler.path == "/moved" and (handler.refuse(302, Location=url) or True)
            )
        named = f"{http_server.url}/moved" if way == "redirect" else url
        refs = {"c/0": [f"{http_server.url}/data", 0, 50], "c/1": [named, 0, 50]}
        http_server.objects["/refs.json"] = json.dumps({"version": 1, "refs": refs}).encode()
        with opened(**({"target": f"{http_server.url}/data"} if way == "target" else {})) as store:
            assert store.get("c/0", limit=50).data == DATA[::-1][:50]
            with pytest.raises(StoreError, match="must not name"):
                store.get("c/1", limit=50)
        assert not private.requests
        with opened(remote_protocol="http") as store:
            assert store.get("c/1", limit=50).data == DATA[:50]


@pytest.mark.parametrize(
    ("address", "near"),
    [("127.9.9.9", True), ("169.254.169.254", True), ("::1", True), ("fe80::1%eth0", True),
     ("0.0.0.0", True), ("::", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False),
     ("192.0.2.1", False), ("2001:db8::1", False), ("example.com", False)],
)  # fmt: skip
def test_addresses_of_this_machine_and_its_link(address, near):
    assert is_near(address) == near


def test_who_mounts_may_let_references_reach_this_machine(opening, http_server, quick, tmp_path):
    (tmp_path / "own").write_bytes(DATA)
    refs = {"zarr.json": "{}", "c/0": [f"file://{tmp_path}/own", 0, 50]}
    http_server.objects["/refs.json"] = json.dumps({"version": 1, "refs": refs}).encode()
    config = StoreConfig(retry=quick, storage_options={"remote_protocol": "file"})
    store = opening(f"reference::{http_server.url}/refs.json", config)
    assert store.get("c/0", limit=50).data == DATA[:50]


def test_through_a_cache(opening, http_server, quick, tmp_path):
    http_server.objects["/root/x"] = DATA
    store = opening(
        f"simplecache::{http_server.url}/root",
        StoreConfig(retry=quick, storage_options={"cache_storage": str(tmp_path / "cache")}),
    )
    assert store.get("x", limit=5000).data == DATA
    assert store.get_ranges("x", [ByteRange(5, 5)])[0].data == DATA[5:10]


@pytest.fixture
def s3(s3_bucket, s3_options, quick):
    """``(bucket, client, config)``."""
    name, client = s3_bucket
    return name, client, StoreConfig(storage_options=s3_options, retry=quick)


def test_a_bucket_that_is_gone_is_not_an_empty_one(opening, s3):
    name, client, config = s3
    store = opening(f"s3://{name}/root", config)
    assert store.get("x", limit=9) is None
    client.delete_bucket(Bucket=name)
    with pytest.raises(StoreError, match="bucket"):
        store.get("x", limit=9)
    with pytest.raises(StoreError, match="bucket"):
        list(store.list_dir(""))


def test_an_s3_listing_of_several_pages(opening, s3, made, monkeypatch):
    name, client, config = s3
    for i in range(11):
        client.put_object(Bucket=name, Key=f"root/{i:02}", Body=b"")
    store = opening(f"s3://{name}/root", config)
    (filesystem,) = made
    call, pages = filesystem._call_s3, 0

    def small_pages(*args, **kwargs):
        nonlocal pages
        pages += 1
        return call(*args, MaxKeys=2, **kwargs)

    monkeypatch.setattr(filesystem, "_call_s3", small_pages)
    names = store.list_dir("")
    assert next(names) == "00"
    assert pages == 1
    assert list(names) == [f"{i:02}" for i in range(1, 11)]
    assert pages == 6


def test_a_directory_marker_is_no_name(opening, s3):
    name, client, config = s3
    client.put_object(Bucket=name, Key="root/dir/", Body=b"")
    client.put_object(Bucket=name, Key="root/dir/x", Body=b"")
    store = opening(f"s3://{name}/root", config)
    assert list(store.list_dir("")) == ["dir/"]
    assert list(store.list_dir("dir")) == ["x"]


def test_secrets_stay_out_of_errors(opening, s3, http_server, caplog):
    name, _, config = s3
    http_server.intercept = lambda handler: handler.refuse(403) or True
    options = {
        **config.storage_options,
        "endpoint_url": http_server.url.replace("//", "//user:hunter2-very-secret@"),
    }
    store = opening(f"s3://{name}/root", config._replace(storage_options=options))
    with pytest.raises(StoreError) as caught:
        store.get("x", limit=9)
    shown = f"{caught.value} {caught.value.__cause__!r} {config!r} {store.url} {caplog.text}"
    assert "hunter2" not in shown


def test_no_instance_is_shared():
    # In one thread: fsspec shares instances among the calls of a thread.
    ours, theirs = (open_filesystem("memory://root", {}, str)[0] for _ in range(2))
    assert ours is not theirs
    assert ours is not fsspec.filesystem("memory")


def test_a_digest_saves_reading_back_what_was_put(memory, monkeypatch):
    store, filesystem, _ = memory
    digest = base64.b64encode(hashlib.md5(DATA).digest()).decode()
    info = filesystem.info
    monkeypatch.setattr(filesystem, "info", lambda path: {**info(path), "md5Hash": digest})
    monkeypatch.setattr(filesystem, "cat_file", None)
    put = store.put("x", [DATA], expected=None)
    assert (put.size, put.generation) == (5000, store.info("x").generation)


@pytest.mark.parametrize("deleted", [False, True])
def test_what_was_put_is_not_mistaken_for_what_came_after(memory, monkeypatch, deleted):
    store, filesystem, _ = memory
    pipe = filesystem.pipe_file

    def overtaken(path, data):
        pipe(path, data)
        filesystem.rm_file(path) if deleted else pipe(path, data[::-1])

    monkeypatch.setattr(filesystem, "pipe_file", overtaken)
    put = store.put("x", [DATA], expected=None)
    now = store.info("x")
    assert put.generation != (None if now is None else now.generation)
    monkeypatch.undo()
    with pytest.raises(StoreConflict):
        store.put("x", [b"merged with what is gone"], expected=put.generation)


def test_of_racing_puts_through_one_store_one_wins(memory, monkeypatch):
    store, filesystem, _ = memory
    pipe = filesystem.pipe_file

    def slow(path, data):
        time.sleep(0.02)
        pipe(path, data)

    monkeypatch.setattr(filesystem, "pipe_file", slow)

    def put(i: int) -> bool:
        try:
            store.put("x", [b"%d" % i], expected=None)
        except StoreConflict:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(put, range(16))) == 1


def test_an_object_in_the_way_is_an_error(memory):
    store, _, _ = memory
    store.put("x", [DATA], expected=None)
    with pytest.raises(StoreError, match="in the way"):
        store.put("x/y", [DATA], expected=ANY)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("simplecache::memory://{}", "a cache only has copies"),
        ("dir://{}::memory://", "not known to replace objects in one step"),
        ("filecache::file:///tmp/{}", "a cache only has copies"),
    ],
)
def test_what_cannot_replace_at_once_is_read_only(opening, quick, url, reason):
    store = opening(url.format(uuid.uuid4().hex), StoreConfig(retry=quick))
    assert reason in store.read_only
    with pytest.raises(StoreReadOnly, match=reason):
        store.put("x", [DATA], expected=ANY)


class OneAtATime:
    """A file system with one connection, as that of FTP."""

    async_impl = False

    def __init__(self):
        self._busy = threading.Lock()
        self.calls = 0

    @contextmanager
    def _asked(self):
        assert self._busy.acquire(blocking=False), "two threads ask at the same time"
        self.calls += 1
        time.sleep(0)  # lets another thread come in between
        yield
        self._busy.release()

    def info(self, path):
        with self._asked():
            return {"name": path, "type": "file", "size": 4, "mtime": 1.0}

    def cat_file(self, path, start, end):
        with self._asked():
            return b"data"[start:end]

    def ls(self, path, detail):
        with self._asked():
            return [{"name": "x", "type": "file"}]


def test_file_systems_that_know_no_threads_are_asked_by_one_at_a_time():
    filesystem = OneAtATime()
    reader = PlainReader(filesystem, RequestConfig())

    def ask(_: int) -> bool:
        whole = reader.get("x", 10).data == b"data"
        return whole and list(reader.list_dir("")) == ["x"]

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(400)))
    assert filesystem.calls == 400 * 4


@pytest.mark.parametrize("name", ["x", "x" * 100_000])
def test_a_listing_without_end_is_an_error(memory, monkeypatch, name):
    store, filesystem, root = memory
    entry = {"name": f"{urlsplit(root).netloc}/a/{name}", "type": "file"}
    monkeypatch.setattr(bounds, "MOST_NAMES", 1000)
    monkeypatch.setattr(filesystem, "ls", lambda path, detail: repeat(entry))
    seen = []
    with pytest.raises(StoreError, match="the listing goes on after"):
        seen.extend(store.list_dir("a"))
    assert len(seen) <= 1000
