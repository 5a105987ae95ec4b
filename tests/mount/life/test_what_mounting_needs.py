"""What a machine must have before anything can be mounted, each missing thing told in one line."""

import os

import pytest

from zarrfs.errors import MountError
from zarrfs.fuse import mount_point
from zarrfs.fuse.mount_point import check_can_mount


@pytest.fixture
def user(monkeypatch, tmp_path):
    """Another user than root, where FUSE is there; its ``PATH`` and ``fuse.conf``."""
    (tmp_path / "fuse").touch()
    (tmp_path / "fuse.conf").write_text("# nothing\n")
    helper = tmp_path / "fusermount3"
    helper.write_text("#!/bin/sh\n")
    helper.chmod(0o755)
    monkeypatch.setattr(mount_point, "_DEVICE", str(tmp_path / "fuse"))
    monkeypatch.setattr(mount_point, "_FUSE_CONF", str(tmp_path / "fuse.conf"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(mount_point, "helper", lambda: str(helper) if helper.exists() else None)
    return tmp_path


def test_everything_is_there(user):
    check_can_mount(others=False)
    (user / "fuse.conf").write_text("mount_max = 10\n user_allow_other \n")
    check_can_mount(others=True)


def test_no_device(user):
    (user / "fuse").unlink()
    with pytest.raises(MountError, match=r"does not exist: load the fuse module .*--device"):
        check_can_mount(others=False)


def test_no_helper(user, monkeypatch):
    (user / "fusermount3").unlink()
    with pytest.raises(MountError, match=r"^fusermount3 is not installed \(package fuse3\)$"):
        check_can_mount(others=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    check_can_mount(others=True)


def test_access_for_others_is_not_allowed(user):
    with pytest.raises(MountError, match="need a line user_allow_other in "):
        check_can_mount(others=True)
    (user / "fuse.conf").unlink()
    with pytest.raises(MountError, match="need a line user_allow_other in "):
        check_can_mount(others=True)
