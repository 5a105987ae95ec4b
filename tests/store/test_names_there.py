"""Which of many keys may name objects: never without one that does, or that is an error to read."""

import os
import shutil

import pytest

from zarrfs.errors import StoreError
from zarrfs.store.local.local import LocalStore

KEYS = [f"a/c/{n}" for n in range(40)] + [f"a/d/{n}/0" for n in range(40)] + ["5", "a/f/0"]


def let_rest(root) -> None:
    """As if nothing in it had changed for a while."""
    for directory, _, _ in os.walk(root):
        os.utime(directory, (0, 0))


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    (root / "a/c").mkdir(parents=True)
    (root / "a/d/7").mkdir(parents=True)
    for name in ("a/c/3", "a/d/7/0", "5", "a/f"):
        (root / name).write_bytes(b"x")
    os.mkfifo(root / "a/c/4")
    (root / "a/c/5").symlink_to("/etc/hostname")
    (root / "a/c/6").symlink_to("3")
    (root / "a/d/8").symlink_to("7")
    (root / "a/c/7").symlink_to("nowhere")
    let_rest(root)
    return root


@pytest.fixture
def store(root):
    store = LocalStore(root)
    yield store
    store.close()


def _may_have(store: LocalStore, key: str) -> bool:
    try:
        return store.get(key, limit=10) is not None
    except StoreError:
        return True


def test_what_is_there_or_is_an_error_and_nothing_else(store):
    expected = [key for key in KEYS if _may_have(store, key)]
    assert expected == ["a/c/3", "a/c/4", "a/c/5", "a/c/6", "a/c/7", "a/d/7/0", "a/d/8/0", "5"]
    assert store.may_exist(KEYS) == expected


def test_a_directory_that_changes_is_not_relied_on(store, root):
    """While names in it are replaced, a listing may lack some of them."""
    (root / "a/c/1").write_bytes(b"x")
    assert store.may_exist(KEYS) == KEYS


def test_a_full_directory_is_not_listed_to_its_end(store, root):
    for number in range(500):
        (root / f"a/c/more{number}").write_bytes(b"")
    let_rest(root)
    assert store.may_exist(KEYS) == KEYS


@pytest.mark.parametrize("keys", [[f"{n}" for n in range(9)], KEYS], ids=["in it", "below it"])
def test_a_deleted_root_is_no_empty_one(store, root, keys):
    shutil.rmtree(root)
    assert store.may_exist(keys) == keys


def test_directories_are_not_entered_one_by_one_below_one_that_is_missing(store, monkeypatch):
    opened = []
    open_one = store._root.open

    def counted(key, path, flags):
        opened.append(key)
        return open_one(key, path, flags)

    monkeypatch.setattr(store._root, "open", counted)
    keys = [f"a/b/{n}/{m}/0" for n in range(50) for m in range(50)]
    assert store.may_exist(keys) == []
    assert opened == ["a", "a/b"]
