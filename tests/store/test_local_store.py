"""What only a local directory can do to its readers."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from zarrfs.errors import StoreConflict, StoreError
from zarrfs.store.base import ByteRange
from zarrfs.store.local import local, local_root
from zarrfs.store.local.local import LocalStore

INSIDE = b"inside"
OUTSIDE = b"outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store beside which lies what it must not give away."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x").write_bytes(OUTSIDE)
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "x").write_bytes(OUTSIDE)
    root = tmp_path / "root"
    (root / "dir" / "deep").mkdir(parents=True)
    (root / "x").write_bytes(INSIDE)
    (root / "dir" / "x").write_bytes(INSIDE)
    links = {
        "up": "..",
        "beside": "../root2",
        "absolute_out": str(tmp_path / "secret"),
        "file_out": "../secret/x",
        "dir/out": "../../secret",
        "in": "dir",
        "absolute_in": str(root / "dir"),
        "roundabout": "../root/dir",
        "dangling": "nowhere",
        "loop": "loop",
        "proc": "/proc/self/root",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize(
    "key",
    ["up/secret/x", "beside/x", "absolute_out/x", "file_out", "dir/out/x", "proc/etc/hostname"],
)
def test_a_link_out_of_the_store_is_refused(store, key):
    for ask in (
        lambda: store.get(key, limit=100),
        lambda: store.get_ranges(key, [ByteRange(0, 5)]),
        lambda: store.info(key),
    ):
        with pytest.raises(StoreError, match="leads out of the store; -o follow_symlinks"):
            ask()
    if "/" in key:
        with pytest.raises(StoreError, match="leads out of the store; -o follow_symlinks"):
            list(store.list_dir(key.rpartition("/")[0]))


@pytest.mark.parametrize("key", ["in/x", "absolute_in/x"])
def test_a_link_within_the_store_is_followed(store, key):
    assert store.get(key, limit=100).data == INSIDE


def test_links_out_of_the_store_are_followed_on_request(root):
    store = LocalStore(root, follow_symlinks=True)
    assert store.get("absolute_out/x", limit=100).data == OUTSIDE
    assert store.get("up/secret/x", limit=100).data == OUTSIDE
    store.close()


@pytest.mark.parametrize("follow", [False, True])
def test_an_object_that_a_link_says_is_elsewhere_is_an_error(root, follow):
    """As git-annex has them before their contents are fetched: not the fill value."""
    (root / "dir/annex").symlink_to("../../.git/annex/objects/a")
    (root / "gone").symlink_to(root.parent / "gone")
    store = LocalStore(root, follow_symlinks=follow)
    for key in ("dangling", "dangling/0", "gone/0/0", "dir/annex", "in/annex"):
        for ask in (
            lambda key: store.get(key, limit=1),
            store.info,
            lambda key: store.get_ranges(key, [ByteRange(0, 1)]),
            lambda key: _raised(next(iter(store.get_many([key, "x"], limit=100)))),
        ):
            with pytest.raises(StoreError, match="a symbolic link on its path has no target"):
                ask(key)
    for key in ("in/nothing", "dir/deep/0", "x/0", "none/0", "in/x/0"):
        assert store.get(key, limit=1) is None
    with pytest.raises(StoreError):
        store.get("loop", limit=1)
    store.close()


def _raised(found):
    if isinstance(found, StoreError):
        raise found


def test_links_are_listed_as_what_they_lead_to(store, open_fds):
    before = open_fds()
    names = set(store.list_dir(""))
    assert None not in (store.status("x"), store.status("dir"))
    assert open_fds() == before
    assert {"x", "dir/", "in/", "absolute_in/", "file_out", "up", "loop", "dangling"} <= names


PARTS = st.sampled_from(
    ["..", ".", "", "dir", "x", "up", "beside", "absolute_out", "out", "in", "root", "secret", "~"]
)


@given(parts=st.lists(PARTS, min_size=1, max_size=8))
@examples(200)
def test_no_key_reads_what_lies_outside(store, parts):
    key = "/".join(parts)
    try:
        blob = store.get(key, limit=100)
        names = list(store.list_dir(key))
    except StoreError:
        return
    assert blob is None or blob.data == INSIDE
    assert "secret/" not in names


def test_a_key_of_a_directory_or_through_a_file_is_missing(store):
    for key in ("dir", "in", "x/y", "x/y/z"):
        assert store.get(key, limit=1) is None
        assert store.info(key) is None
    assert list(store.list_dir("x")) == []


@pytest.mark.timeout(20)
def test_a_fifo_a_socket_and_a_device_do_not_hang(store, root):
    os.mkfifo(root / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.relpath(root / "socket"))
    for key in ("fifo", "socket"):
        with pytest.raises(StoreError):
            store.get(key, limit=1)
        with pytest.raises(StoreError, match="not a regular file"):
            store.info(key)
    assert not {"fifo", "socket"} & set(store.list_dir(""))
    listener.close()


def test_a_name_that_is_not_utf8_is_listed_and_read(store, root):
    with open(os.fsencode(root) + b"/dir/\xff\xfe", "wb") as file:
        file.write(INSIDE)
    (name,) = set(store.list_dir("dir")) - {"x", "deep/", "out"}
    assert store.get(f"dir/{name}", limit=100).data == INSIDE
    with pytest.raises(StoreError, match="not a valid key"):
        store.get("dir/\ud800", limit=1)


def test_the_first_name_comes_without_the_last(store, root, monkeypatch):
    for i in range(500):
        (root / "dir" / "deep" / str(i)).touch()
    seen = 0
    scandir = os.scandir

    class Counting:
        def __init__(self, fd: int) -> None:
            self.entries = scandir(fd)

        def __enter__(self) -> Counting:
            return self

        def __exit__(self, *_: object) -> None:
            self.entries.close()

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            nonlocal seen
            for entry in self.entries:
                seen += 1
                yield entry

    monkeypatch.setattr(os, "scandir", Counting)
    names = store.list_dir("dir/deep")
    next(names)
    assert seen == 1
    assert sum(1 for _ in names) == 499


def test_an_abandoned_listing_keeps_nothing_open(store, open_fds: Callable[[], int]):
    before = open_fds()
    for _ in range(50):
        names = store.list_dir("")
        next(names)
        del names
        store.list_dir("")
    assert open_fds() == before


def read_with(monkeypatch, read) -> None:
    """All reads of files go through ``read``."""
    monkeypatch.setattr(local, "pread_exactly", read)


def rewrite_during_reads(monkeypatch, path: Path, times: int) -> None:
    """Each read of a file, up to ``times``, is followed by its being rewritten in place."""
    left = times
    read = local_root.pread_exactly

    def interrupted(fd: int, offset: int, length: int) -> bytes | memoryview | None:
        nonlocal left
        data = read(fd, offset, length)
        if left:
            left -= 1
            path.write_bytes(bytes([left]) * (100 + left))
        return data

    read_with(monkeypatch, interrupted)


def test_a_file_rewritten_in_place_is_read_again(store, root, monkeypatch):
    rewrite_during_reads(monkeypatch, root / "x", 3)
    blob = store.get("x", limit=1000)
    assert blob.data == bytes(100)
    assert blob.info == store.info("x")


def test_ranges_of_a_file_rewritten_in_place_are_of_one_state(store, root, monkeypatch):
    (root / "x").write_bytes(b"\xff" * 200)
    rewrite_during_reads(monkeypatch, root / "x", 3)
    blobs = store.get_ranges("x", [ByteRange(0, 10), ByteRange(50, 10)])
    assert [blob.data for blob in blobs] == [bytes(10)] * 2


def test_a_file_that_never_rests_is_a_conflict(store, root, monkeypatch):
    rewrite_during_reads(monkeypatch, root / "x", 200)
    with pytest.raises(StoreConflict):
        store.get("x", limit=10**6)
    with pytest.raises(StoreConflict):
        store.get_ranges("x", [ByteRange(0, 10), ByteRange(20, 10)])


def test_a_file_truncated_while_it_is_read_is_read_again(store, root, monkeypatch):
    read = local_root.pread_exactly

    def truncated(fd: int, offset: int, length: int) -> bytes | memoryview | None:
        read_with(monkeypatch, read)
        os.truncate(root / "x", 2)
        return read(fd, offset, length)

    read_with(monkeypatch, truncated)
    assert store.get("x", limit=100).data == INSIDE[:2]


def test_a_file_replaced_while_it_is_read_stays_what_it_was(store, root, monkeypatch):
    read = local_root.pread_exactly

    def replaced(fd: int, offset: int, length: int) -> bytes | memoryview | None:
        (root / "new").write_bytes(b"NEW ONE")
        (root / "new").rename(root / "x")
        return read(fd, offset, length)

    read_with(monkeypatch, replaced)
    blobs = store.get_ranges("x", [ByteRange(0, 3), ByteRange(3, 3)])
    assert b"".join(blob.data for blob in blobs) == INSIDE
    assert blobs[0].info.generation != store.info("x").generation


def test_a_change_that_keeps_size_and_mtime_is_told(store, root):
    status = os.stat(root / "x")
    before = store.info("x").generation
    (root / "x").write_bytes(INSIDE.upper())
    os.utime(root / "x", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert store.info("x").generation != before


def test_a_store_deleted_and_written_anew_is_found_again(store, root, open_fds):
    before = open_fds()
    for i in range(5):
        shutil.rmtree(root)
        with pytest.raises(StoreError, match="deleted"):
            store.get("x", limit=100)
        root.mkdir()
        (root / "x").write_bytes(b"%d" % i)
        assert store.get("x", limit=100).data == b"%d" % i
        assert list(store.list_dir("")) == ["x"]
    assert open_fds() == before


def test_files_fetched_ahead_are_what_they_are_when_their_turn_comes(store, root):
    """Those that are rewritten in place while earlier ones are used."""
    names = [f"n{i}" for i in range(20)]
    for name in names:
        (root / name).write_bytes(b"old" * 5)
    found = store.get_many(names, limit=100)
    assert next(found).data == b"old" * 5
    (root / "n5").write_bytes(b"other")
    (root / "n6").unlink()
    (root / "new").write_bytes(b"replaced")
    (root / "new").rename(root / "n7")
    os.truncate(root / "n8", 3)
    rest = dict(zip(names[1:], found, strict=True))
    assert rest["n5"].data == b"other"
    assert rest["n5"].info == store.info("n5")
    assert rest["n8"].data == b"old"
    # Open files stay what they were, and these were open.
    assert {rest["n6"].data, rest["n7"].data} == {b"old" * 5}
    assert all(rest[name].data == b"old" * 5 for name in names[9:])


@pytest.mark.parametrize("in_one_directory", [True, False])
def test_what_is_opened_ahead_is_what_get_finds(root, open_fds, in_one_directory):
    keys = [f"d/{i}" if in_one_directory else f"d{i}/0" for i in range(100)]
    for i, key in enumerate(keys):
        (root / key).parent.mkdir(exist_ok=True)
        if i % 10:
            (root / key).write_bytes(b"%d" % i)
    (root / keys[11]).unlink()
    (root / keys[11]).mkdir()
    (root / keys[12]).unlink()
    (root / keys[12]).symlink_to("/etc/passwd")
    (root / keys[13]).write_bytes(b"x" * 101)
    store = LocalStore(root)
    before = open_fds()
    found = dict(zip(keys, store.get_many(keys, limit=100), strict=True))
    assert open_fds() == before
    for i, key in enumerate(keys):
        if i in (12, 13):
            assert isinstance(found[key], StoreError)
            with pytest.raises(StoreError) as raised:
                store.get(key, limit=100)
            assert raised.value.reason == found[key].reason
        else:
            assert found[key] == store.get(key, limit=100)
    stopped = store.get_many(keys[14:], limit=100)
    next(stopped)
    stopped.close()
    assert open_fds() == before
    store.close()
