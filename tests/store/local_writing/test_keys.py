"""Keys of a local store that name something special, or lead out of it."""

import contextlib
import os
import stat
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.soak import examples
from tests.store.local_writing.trees import NEW, OLD, files, objects
from zarrfs.errors import (
    StoreConflict,
    StoreError,
)
from zarrfs.store.base import ANY
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)


def test_a_directory_is_not_replaced(store, root):
    for key in ("dir", "dir/x/y", "dir/x/y/z"):
        with pytest.raises(StoreError):
            store.put(key, [NEW], expected=None)
        store.delete(key, expected=ANY)
    (root / "empty").mkdir()
    with pytest.raises(StoreError, match="is a directory"):
        store.put("empty", [NEW], expected=ANY)
    store.delete("empty", expected=ANY)
    assert (root / "empty").is_dir()
    assert objects(root) == {"dir/x"}


def test_a_fifo_is_not_replaced(store, root):
    os.mkfifo(root / "fifo")
    for write in (store.put, lambda key, _, expected: store.delete(key, expected=expected)):
        with pytest.raises(StoreError, match="not a regular file"):
            write("fifo", [NEW], expected=ANY)
    assert stat.S_ISFIFO((root / "fifo").stat().st_mode)


def test_long_names(store, root):
    store.put("n" * 255, [NEW], expected=None)
    store.put("/".join(["n" * 200] * 19), [NEW], expected=None)
    for key in ("n" * 256, "m" * 256 + "/x", "/".join(["m" * 200] * 30)):
        with pytest.raises(StoreError, match="too long"):
            store.put(key, [NEW], expected=None)
        store.delete(key, expected=ANY)
    assert not [name for name in os.listdir(root) if name.startswith("m")]


def test_names_that_are_not_utf8(store, root):
    key = os.fsdecode(b"dir/\xff\xfe")
    store.put(key, [NEW], expected=None)
    assert set(store.list_dir("dir")) == {"x", key.removeprefix("dir/")}
    store.delete(key, expected=ANY)


@pytest.fixture
def linked(root: Path, tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_bytes(OLD)
    for name, target in {
        "out": "../outside",
        "absolute_out": str(tmp_path / "outside"),
        "file_out": "../outside/x",
        "in": "dir",
        "absolute_in": str(root / "dir"),
        "file_in": "dir/x",
        "dangling": "nowhere",
        "loop": "loop",
    }.items():
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize(
    "key", ["out/x", "out/new", "out/new/x", "absolute_out/new", "file_out", "loop", "loop/x"]
)
def test_nothing_is_written_outside(store, linked, tmp_path, key):
    for write in (
        lambda: store.put(key, [NEW], expected=ANY),
        lambda: store.put(key, [NEW], expected=None),
    ):
        with pytest.raises(StoreError):
            write()
    if key == "out/new/x":
        store.delete(key, expected=ANY)  # missing, wherever it would be
    else:
        with pytest.raises(StoreError):
            store.delete(key, expected=ANY)
    assert files(tmp_path / "outside") == {"x"}
    assert (tmp_path / "outside" / "x").read_bytes() == OLD
    assert os.path.islink(linked / key.partition("/")[0])


def test_links_within_the_store(store, linked, root):
    store.put("in/y", [NEW], expected=None)
    store.put("absolute_in/z/z", [NEW], expected=None)
    assert (root / "dir" / "y").read_bytes() == (root / "dir" / "z" / "z").read_bytes() == NEW
    generation = store.info("file_in").generation
    assert generation == store.info("dir/x").generation
    with pytest.raises(StoreConflict):
        store.put("file_in", [NEW], expected=None)
    store.put("file_in", [NEW], expected=generation)
    assert not (root / "file_in").is_symlink()
    assert (root / "dir" / "x").read_bytes() == OLD
    for ask in (
        partial(store.put, "dangling", [NEW], expected=None),
        partial(store.info, "dangling"),
    ):
        with pytest.raises(StoreError, match="no target"):
            ask()
    assert (root / "dangling").is_symlink()
    with pytest.raises(StoreError, match="no target"):
        store.put("dangling/x", [NEW], expected=None)
    store.delete("dangling", expected=ANY)
    assert store.get("dangling", limit=9) is None
    store.delete("in", expected=ANY)
    assert (root / "in").is_symlink()


def test_links_out_of_the_store_are_followed_on_request(linked, tmp_path):
    store = LocalStore(linked, follow_symlinks=True)
    store.put("out/x", [NEW], expected=store.info("out/x").generation)
    store.put("out/new/y", [NEW], expected=None)
    store.close()
    assert files(tmp_path / "outside") == {"x", "new/y"}
    assert (tmp_path / "outside" / "x").read_bytes() == NEW


PARTS = st.sampled_from(["..", ".", "", "dir", "x", "out", "in", "absolute_out", "new", "root"])


@given(parts=st.lists(PARTS, min_size=1, max_size=6))
@examples(100)
def test_no_key_writes_outside(store, linked, tmp_path, parts):
    with contextlib.suppress(StoreError):
        store.put("/".join(parts), [NEW], expected=ANY)
    assert files(tmp_path / "outside") == {"x"}
    assert (tmp_path / "outside" / "x").read_bytes() == OLD
    assert set(os.listdir(tmp_path)) == {"outside", "root"}
