"""Mode, owner and time of the files that puts leave."""

import os
import stat
import time

import pytest

from tests.store.local_writing.trees import AS_ROOT, NEW, NOBODY, OLD, as_nobody
from zarrfs.store.base import ANY
from zarrfs.store.local.local import LocalStore

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("umask", [0o000, 0o027], ids=oct)
def test_mode(store, root, umask):
    """As of any new file, and of the old one where there is one."""
    before = os.umask(umask)
    try:
        store.put("dir/new/y", [NEW], expected=None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "dir" / "new").stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE((root / "dir" / "new" / "y").stat().st_mode) == 0o666 & ~umask
    for mode in (0o600, 0o666, 0o444):
        (root / "dir" / "x").chmod(mode)
        store.put("dir/x", [NEW], expected=ANY)
        assert stat.S_IMODE((root / "dir" / "x").stat().st_mode) == mode


@AS_ROOT
def test_owner(store, root):
    os.chown(root / "dir" / "x", NOBODY, NOBODY - 1)
    (root / "dir" / "x").chmod(0o640)
    store.put("dir/x", [NEW], expected=ANY)
    status = (root / "dir" / "x").stat()
    assert (status.st_uid, status.st_gid) == (NOBODY, NOBODY - 1)
    assert stat.S_IMODE(status.st_mode) == 0o640
    os.chown(root / "dir", 0, NOBODY)
    (root / "dir").chmod(0o2775)
    store.put("dir/new/y", [NEW], expected=None)
    store.put("dir/y", [NEW], expected=None)
    for name in ("y", "new", "new/y"):
        assert (root / "dir" / name).stat().st_gid == NOBODY


@AS_ROOT
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_a_group_was_allowed_is_not_for_another_one(public):
    public.chmod(0o777)
    (public / "x").write_bytes(OLD)
    os.chown(public / "x", NOBODY, 0)
    (public / "x").chmod(0o664)

    def check() -> None:
        store = LocalStore(public)
        store.put("x", [NEW], expected=ANY)
        store.close()

    as_nobody(check)
    status = (public / "x").stat()
    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (NOBODY, 0o644)


def test_no_two_states_have_the_same_generation(store, root, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    seen = {store.put("dir/x", [b"%4d" % i], expected=ANY).generation for i in range(1000)}
    assert len(seen) == 1000


def test_the_time_stamp_is_finer_than_the_steps_of_the_kernel(store, monkeypatch):
    """An inode's number is used again by the next put but one, within one such step."""
    now = 1_234_567_891_234_567_891
    monkeypatch.setattr(time, "time_ns", lambda: now)
    assert store.put("dir/x", [NEW], expected=ANY).mtime_ns == now


def test_the_time_stamp_moves(store, root):
    os.utime(root / "dir" / "x", ns=(1, 1))
    info = store.put("dir/x", [NEW], expected=ANY)
    assert info.mtime_ns == (root / "dir" / "x").stat().st_mtime_ns > 1
