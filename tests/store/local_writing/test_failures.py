"""Puts in a local directory that fail: each says why, and changes nothing."""

import errno
import os
from contextlib import closing

import pytest

from tests.store.local_writing.trees import AS_ROOT, NEW, NOBODY, OLD, as_nobody, files, objects
from zarrfs.errors import (
    StoreAccessDenied,
    StoreError,
    StoreFull,
    StoreQuotaExceeded,
    StoreReadOnly,
)
from zarrfs.store.base import ANY
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("call", ["writev", "fsync", "utime", "rename"])
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StoreFull),
        (errno.EDQUOT, StoreQuotaExceeded),
        (errno.EROFS, StoreReadOnly),
        (errno.EACCES, StoreAccessDenied),
        (errno.EPERM, StoreAccessDenied),
        (errno.EIO, StoreError),
    ],
)
def test_a_put_that_fails_changes_nothing(store, root, monkeypatch, call, number, kind):
    before = store.info("dir/x")

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        for expected in (ANY, before.generation):
            with pytest.raises(StoreError) as caught:
                store.put("dir/x", [NEW], expected=expected)
            assert type(caught.value) is kind
            assert os.strerror(number) in str(caught.value)
        with pytest.raises(kind):
            store.put("dir/new", [NEW], expected=None)
    assert objects(root) == {"dir/x"}
    assert store.info("dir/x") == before
    store.put("dir/x", [NEW], expected=before.generation)


def test_a_full_file_system(small):
    with closing(LocalStore(small)) as store:
        info = store.put("c/x", [bytes(300_000)], expected=None)
        for key in ("c/x", "c/y"):
            with pytest.raises(StoreFull, match="No space left"):
                store.put(key, [b"1" * 900_000], expected=ANY)
        assert objects(small) == {"c/x"}
        assert store.info("c/x") == info
        store.put("c/x", [b"1" * 600_000], expected=info.generation)
        store.delete("c/x", expected=ANY)
        store.put("c/x", [b"1" * 900_000], expected=None)


def test_a_read_only_file_system(small, mount_over):
    (small / "x").write_bytes(OLD)
    mount_over(small, "-o", "remount,ro")
    store = LocalStore(small)
    assert "read-only" in store.read_only
    for write in (
        lambda: store.put("x", [NEW], expected=ANY),
        lambda: store.put("c/x", [NEW], expected=ANY),
        lambda: store.delete("x", expected=ANY),
    ):
        with pytest.raises(StoreReadOnly):
            write()
    assert store.get("x", limit=9).data == OLD
    store.close()


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_permission(public):
    (public / "x").write_bytes(OLD)
    open_one = public / "open"
    (open_one / "closed").mkdir(parents=True)
    (open_one / "closed" / "x").write_bytes(OLD)
    open_one.chmod(0o777)

    def check() -> None:
        store = LocalStore(public)
        assert "permission" in store.read_only
        for key in ("x", "new", "open/x"):
            try:
                store.put(key, [NEW], expected=ANY)
            except StoreAccessDenied:
                continue
            raise AssertionError(key)
        store.close()
        store = LocalStore(open_one)
        assert store.read_only is None
        store.put("x", [NEW], expected=None)
        for write in (
            lambda: store.put("closed/x", [NEW], expected=ANY),
            lambda: store.put("closed/new/x", [NEW], expected=ANY),
            lambda: store.delete("closed/x", expected=ANY),
        ):
            try:
                write()
            except StoreAccessDenied:
                continue
            raise AssertionError
        store.close()

    as_nobody(check)
    assert files(public) == {"x", "open/x", "open/closed/x"}
    assert (open_one / "closed" / "x").read_bytes() == OLD


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_two_users_write_to_one_store(public):
    public.chmod(0o777)
    ours = LocalStore(public)
    ours.put("ours", [NEW], expected=None)

    def check() -> None:
        theirs = LocalStore(public)
        theirs.put("theirs", [NEW], expected=None)
        assert theirs.leftovers(remove=True) == []
        theirs.put("theirs", [NEW], expected=ANY)

    as_nobody(check)
    assert (public / "theirs").stat().st_uid == NOBODY
    ours.put("ours", [OLD], expected=ANY)
    ours.close()
    assert objects(public) == {"ours", "theirs"}
