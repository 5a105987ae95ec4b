"""Archives that change, break or vanish under a reader."""

import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from zarrfs.errors import NodeNotFound, StoreError
from zarrfs.store.base import ByteRange
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.remote.plain_reader import PlainReader

DATA = bytes(i % 251 for i in range(5000))


def write_zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    temporary = path.with_suffix(".new")
    with zipfile.ZipFile(temporary, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    temporary.rename(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.zip"


@pytest.fixture
def opened(path, quick):
    stores = []

    def open_one(**config):
        stores.append(open_store(str(path), StoreConfig(retry=quick, **config)))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


METHODS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


@pytest.mark.parametrize("compression", METHODS)
def test_members_of_a_zip_file_by_its_path(path, opened, compression):
    write_zip(path, {"zarr.json": b"{}", "c/0": DATA}, compression)
    store = opened()
    assert store.get("c/0", limit=5000).data == DATA
    blobs = store.get_ranges("c/0", [ByteRange(4000, 10), ByteRange(-5, 5)])
    assert [bytes(blob.data) for blob in blobs] == [DATA[4000:4010], DATA[-5:]]
    assert sorted(store.list_dir("")) == ["c/", "zarr.json"]
    assert str(path) in store.url


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_large_and_damaged_compressed_members(path, opened, compression):
    large = random.Random(1).randbytes(3 << 19) + bytes(1 << 20)
    write_zip(path, {"empty": b"", "large": large, "small": DATA}, compression)
    store = opened()
    assert bytes(store.get("large", limit=len(large)).data) == large
    assert bytes(store.get("empty", limit=1).data) == b""
    ranges = [ByteRange(0, 7), ByteRange(1 << 20, 1 << 19), ByteRange(-3, 3)]
    blobs = [bytes(blob.data) for blob in store.get_ranges("large", ranges)]
    assert blobs == [large[:7], large[1 << 20 : 3 << 19], large[-3:]]
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 255
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="the archive: "):
        opened().get("large", limit=len(large))


def test_the_generation_is_that_of_the_archive(path, opened):
    write_zip(path, {"x": DATA, "y": DATA})
    store = opened()
    before = store.info("x").generation
    write_zip(path, {"x": DATA, "y": DATA[::-1]})
    after = store.get("x", limit=5000).info
    assert after.generation != before
    assert after.generation == store.info("y").generation
    assert after.mtime_ns == pytest.approx(os.stat(path).st_mtime_ns, abs=1000)


def during_reads(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None], times: int) -> None:
    """Calls ``change`` after each of the first ``times`` reads of a member."""
    get = PlainReader.get
    left = times

    def interrupted(self, path, limit):
        nonlocal left
        blob = get(self, path, limit)
        if left:
            left -= 1
            change()
        return blob

    monkeypatch.setattr(PlainReader, "get", interrupted)


def test_a_member_is_read_again_when_the_archive_is_replaced(path, opened, monkeypatch):
    write_zip(path, {"x": DATA})
    store = opened()
    during_reads(monkeypatch, lambda: write_zip(path, {"x": b"new", "y": b""}), 1)
    blob = store.get("x", limit=5000)
    assert blob.data == b"new"
    assert blob.info == store.info("x")


def test_members_of_an_archive_that_was_deleted_are_not_missing(path, opened):
    write_zip(path, {"x": DATA})
    store = opened()
    path.unlink()
    for key in ("x", "none"):
        with pytest.raises(StoreError, match="archive was deleted"):
            store.get(key, limit=5000)
    with pytest.raises(StoreError, match="archive was deleted"):
        list(store.list_dir(""))


def test_a_corrupt_member_is_an_error(path, opened):
    write_zip(path, {"x": DATA})
    raw = bytearray(path.read_bytes())
    raw[raw.index(DATA) + 100] ^= 1
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="CRC"):
        opened().get("x", limit=5000)


def test_what_is_no_archive_is_refused(path, opened):
    path.write_bytes(b"no zip at all")
    with pytest.raises(StoreError, match="zip"):
        opened()


def test_a_missing_archive(path, quick):
    with pytest.raises(NodeNotFound):
        open_store(f"zip://::file://{path}", StoreConfig(retry=quick))


def test_a_zip_file_over_http(opening, path, http_server, quick):
    write_zip(path, {"a/x": DATA})
    http_server.objects["/store.zip"] = path.read_bytes()
    config = StoreConfig(retry=quick)
    store = opening(f"zip://a::{http_server.url}/store.zip", config)
    assert store.get("x", limit=5000).data == DATA
    write_zip(path, {"a/x": b"new"})
    http_server.objects["/store.zip"] = path.read_bytes()
    assert store.get("x", limit=5000).data == b"new"
    del http_server.objects["/store.zip"]
    with pytest.raises(StoreError, match="archive was deleted"):
        store.get("x", limit=5000)


@pytest.mark.parametrize("named", ["by the URL", "by an option"])
def test_a_compressed_tar_file_over_http(opening, tmp_path, http_server, quick, named):
    """It is read from its beginning to its end."""
    (tmp_path / "x").write_bytes(DATA)
    with tarfile.open(tmp_path / "store.tgz", "w:gz") as archive:
        archive.add(tmp_path / "x", "dir/x")
    http_server.objects["/store.tar.gz"] = (tmp_path / "store.tgz").read_bytes()
    place = f"{http_server.url}/store.tar.gz"
    url, options = f"tar://dir::{place}", {}
    if named == "by an option":
        url, options = "tar://dir", {"fo": place}
    store = opening(url, StoreConfig(retry=quick, storage_options=options))
    assert store.get("x", limit=5000).data == DATA


def test_a_tar_file(opening, tmp_path, quick):
    (tmp_path / "x").write_bytes(DATA)
    with tarfile.open(tmp_path / "store.tar", "w") as archive:
        archive.add(tmp_path / "x", "dir/x")
    store = opening(f"tar://dir::file://{tmp_path}/store.tar", StoreConfig(retry=quick))
    assert store.get("x", limit=5000).data == DATA
    assert list(store.list_dir("")) == ["x"]


def test_a_zip_file_names_nothing_outside(path, opened, tmp_path):
    """Neither by climbing out, nor by a link among its members."""
    (tmp_path / "private").write_bytes(b"private")
    link = zipfile.ZipInfo("c/0")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../private", b"a member")
        archive.writestr(f"{tmp_path}/private", b"a member")
        archive.writestr(link, "../private")
        archive.writestr("zarr.json", "{}")
    store = opened()
    assert store.get("c/0", limit=100).data == b"../private"
    for key in ("../private", f"{tmp_path}/private", "c/../../private"):
        with pytest.raises(StoreError, match="not a valid key"):
            store.get(key, limit=100)
    assert all(name != "private" for name in store.list_dir(""))
