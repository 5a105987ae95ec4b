"""What is read of a remote store is kept on a disk, and never taken for something else."""

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.remote_server import RemoteServer
from zarrfs.errors import StoreConflict, UsageError
from zarrfs.store.base import ANY, ByteRange, ObjectInfo, Store
from zarrfs.store.open import StoreConfig, open_store
from zarrfs.store.wrappers.cache_files import CacheFiles
from zarrfs.store.wrappers.disk_cache import DiskCacheStore

DATA = bytes(range(256)) * 16
KEYS = [f"c/{number}" for number in range(6)]
PLENTY = 64 << 20


@pytest.fixture
def server() -> Iterator[RemoteServer]:
    with RemoteServer() as server:
        server.make_bucket("b", {f"a/{key}": key.encode() + DATA for key in KEYS})
        server.put("b", "a/zarr.json", b"{}")
        yield server


@pytest.fixture
def opened(server, tmp_path) -> Iterator[Callable[..., Store]]:
    """Opens the bucket with a cache, as a mount does; closes it."""
    stores = []

    def open_one(recheck: float = 60.0, size: int = PLENTY, identity: str = "one") -> Store:
        store = open_store("s3://b/a", StoreConfig(server.s3_options()))
        files = CacheFiles(str(tmp_path / "cache"), size)
        stores.append(DiskCacheStore(store, files, identity, recheck, {"zarr.json"}))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def files(tmp_path: Path) -> list[Path]:
    found = (tmp_path / "cache").rglob("*.*.*")
    return sorted(path for path in found if path.is_file())


def whole(store: Store, key: str) -> bytes:
    return bytes(store.get(key, limit=10_000).data)


@pytest.fixture
def store(opened):
    return opened()


def test_what_was_read_once_is_not_fetched_again(server, store):
    assert whole(store, "c/1") == b"c/1" + DATA
    server.counts.reset()
    assert whole(store, "c/1") == b"c/1" + DATA
    assert [
        bytes(b.data) for b in store.get_ranges("c/1", [ByteRange(0, 3), ByteRange(-2, 2)])
    ] == [
        b"c/1",
        DATA[-2:],
    ]
    assert server.counts.total == 0


def test_nothing_is_asked_for_what_never_changes(server, opened):
    for key in KEYS:
        whole(opened(recheck=math.inf), key)
    store = opened(recheck=math.inf)
    server.counts.reset()
    assert [bytes(blob.data) for blob in store.get_many(KEYS, limit=10_000)] == [
        key.encode() + DATA for key in KEYS
    ]
    assert server.counts.total == 0


def test_several_objects_some_of_which_are_kept(server, store):
    for key in KEYS[::2]:
        whole(store, key)
    server.counts.reset()
    found = list(store.get_many([*KEYS, "c/none"], limit=10_000))
    assert [bytes(blob.data) for blob in found[:-1]] == [key.encode() + DATA for key in KEYS]
    assert found[-1] is None
    assert server.counts.requests == {"GET object": 4}


def test_an_object_that_changed_is_fetched_anew(server, opened, tmp_path):
    store = opened(recheck=0)
    whole(store, "c/1")
    server.put("b", "a/c/1", b"other")
    assert whole(store, "c/1") == b"other"
    assert [bytes(b.data) for b in store.get_ranges("c/1", [ByteRange(1, 3)])] == [b"the"]
    assert len(files(tmp_path)) == 1
    server.delete("b", "a/c/1")
    assert store.get("c/1", limit=10) is None
    assert store.get_ranges("c/1", [ByteRange(0, 1)]) is None


def test_parts_of_an_object_are_all_of_one_state(server, opened):
    store = opened(recheck=60)
    store.get_ranges("c/1", [ByteRange(0, 3)])
    server.put("b", "a/c/1", b"xyz" + DATA)
    first, second = store.get_ranges("c/1", [ByteRange(0, 3), ByteRange(100, 5)])
    assert first.info.generation == second.info.generation
    assert bytes(first.data) == b"xyz"


def test_ones_own_writes_are_seen(server, store):
    before = store.get("c/1", limit=10_000).info.generation
    store.put("c/1", [b"mine"], expected=before)
    assert whole(store, "c/1") == b"mine"
    store.delete("c/1", expected=ANY)
    assert store.get("c/1", limit=10) is None


def test_after_a_conflict_the_store_is_asked(server, store):
    before = store.get("c/1", limit=10_000).info.generation
    server.put("b", "a/c/1", b"theirs")
    with pytest.raises(StoreConflict):
        store.put("c/1", [b"mine"], expected=before)
    assert whole(store, "c/1") == b"theirs"


def test_metadata_are_not_kept(server, store, tmp_path):
    assert whole(store, "zarr.json") == b"{}"
    server.put("b", "a/zarr.json", b"[]")
    assert whole(store, "zarr.json") == b"[]"
    assert files(tmp_path) == []


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "extended", "divided elsewhere"])
def test_a_damaged_file_is_a_miss(server, store, tmp_path, damage):
    whole(store, "c/1")
    (path,) = files(tmp_path)
    content = path.read_bytes()
    at = len(content) // 2
    path.write_bytes(
        {
            "cut": content[:at],
            "changed": content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :],
            "empty": b"",
            "extended": content + b"x",
            "divided elsewhere": content[:12] + bytes([content[12] - 1]) + content[13:],
        }[damage]
    )
    server.counts.reset()
    assert whole(store, "c/1") == b"c/1" + DATA
    assert server.counts.requests["GET object"] == 1
    assert files(tmp_path)[0].read_bytes() == content


def test_another_store_with_the_same_keys_has_files_of_its_own(server, opened):
    whole(opened(), "c/1")
    other = opened(recheck=math.inf, identity="two")
    server.counts.reset()
    whole(other, "c/1")
    assert server.counts.requests == {"GET object": 1}


def test_what_was_used_least_recently_goes_first(server, opened, tmp_path):
    data = os.urandom(40_000)
    size = 1 << 20
    for number in range(60):
        server.put("b", f"a/x/{number}", data)
    store = opened(size=size)
    for number in range(60):
        assert store.get(f"x/{number}", limit=10**6) is not None
        # As long ago as it would be on a slower machine.
        for path in files(tmp_path):
            os.utime(path, (path.stat().st_atime - 100, path.stat().st_mtime - 100))
        if number:
            store.get("x/0", limit=10**6)
    kept = sum(path.stat().st_blocks * 512 for path in files(tmp_path))
    assert 0 < kept <= 1.1 * size
    server.counts.reset()
    store.get("x/0", limit=10**6)
    store.get("x/59", limit=10**6)
    assert server.counts.total == 0


def test_it_is_for_this_user_alone(opened, tmp_path):
    whole(opened(), "c/1")
    for path in [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]:
        assert path.stat().st_mode & 0o77 == 0, path


def test_a_directory_that_others_may_enter_is_refused(tmp_path):
    (tmp_path / "zarrfs-cache-1").mkdir(mode=0o755)
    with pytest.raises(UsageError, match="this user alone"):
        CacheFiles(str(tmp_path), PLENTY)


def test_a_link_in_its_place_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "zarrfs-cache-1").symlink_to("elsewhere")
    with pytest.raises(UsageError, match="this user alone"):
        CacheFiles(str(tmp_path), PLENTY)


def test_what_another_user_puts_in_its_place_is_not_used(server, opened, tmp_path):
    """Whoever owns the directory above can do so, and the cache reads and removes files."""
    store = opened(size=1 << 20)
    place = tmp_path / "cache/zarrfs-cache-1"
    place.rename(tmp_path / "cache/moved")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "large").write_bytes(bytes(2 << 20))
    place.symlink_to(precious)
    assert whole(store, "c/1") == b"c/1" + DATA
    assert [path.name for path in precious.iterdir()] == ["large"]
    server.counts.reset()
    assert whole(store, "c/1") == b"c/1" + DATA
    assert server.counts.total == 0


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be a disk cache"):
        CacheFiles(str(tmp_path / "file"), PLENTY)


def test_a_disk_that_is_full_is_no_error(store, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    assert whole(store, "c/1") == b"c/1" + DATA
    assert not list((tmp_path / "cache").rglob("tmp-*"))


_WRITER = """
import sys
from zarrfs.store.base import ObjectInfo
from zarrfs.store.wrappers.cache_files import CacheFiles
files = CacheFiles(sys.argv[1], 1 << 26)
print("begun", flush=True)
number = 0
while True:
    data = bytes([number % 256]) * 300_000
    info = ObjectInfo(len(data), None, (str(number), None, len(data)))
    files.keep(f"k{number % 7}", info, 0, data)
    number += 1
"""


def test_killed_writers_leave_whole_files_only(tmp_path):
    from zarrfs.store.ranges import Span

    cache = tmp_path / "cache"
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(cache)], stdout=subprocess.PIPE
        )
        writer.stdout.readline()
        threading.Event().wait(0.1)
        writer.kill()
        writer.wait()
        writer.stdout.close()
    files = CacheFiles(str(cache), PLENTY)
    for number in range(7):
        part = files.read(f"k{number}", Span(0, 300_000), None)
        if part is not None:
            (state, *_) = part.info.generation
            assert bytes(part.data) == bytes([int(state) % 256]) * 300_000


def test_a_look_up_lists_no_folder_again(server, opened, monkeypatch):
    """However many parts of an object are kept."""
    store = opened(recheck=math.inf)
    server.put("b", "a/large", bytes(range(256)) * 400)
    ranges = [ByteRange(1000 * number, 100) for number in range(100)]
    for wanted in ranges:
        store.get_ranges("large", [wanted])
    listed: list[object] = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listdir(path))
    server.counts.reset()
    for wanted in ranges:
        (blob,) = store.get_ranges("large", [wanted])
        assert bytes(blob.data) == (bytes(range(256)) * 400)[wanted.offset :][:100]
    assert server.counts.total == 0
    assert len(listed) <= 1


def test_an_object_of_nearly_the_limit_is_kept(server, opened):
    data = os.urandom(900_000)
    server.put("b", "a/large", data)
    store = opened(size=1 << 20)
    for _ in range(2):
        assert bytes(store.get("large", limit=10**6).data) == data
    assert server.counts.requests["GET object"] == 1


def test_many_threads_keep_within_the_limit(tmp_path):
    size = 8 << 20
    cache = CacheFiles(str(tmp_path / "cache"), size)
    largest: list[int] = []

    def keep(writer: int) -> None:
        for number in range(12):
            data = bytes([number]) * (1 << 20)
            cache.keep(f"{writer}.{number}", ObjectInfo(len(data), 1, ("state", 1)), 0, data)
            largest.append(allocated())

    def allocated() -> int:
        total = 0
        for folder, _, names in os.walk(tmp_path / "cache"):
            for name in names:
                with suppress(FileNotFoundError):
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
        return total

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(keep, range(6)))
    assert size / 2 < max(largest) <= 1.05 * size
