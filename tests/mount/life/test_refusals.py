"""What cannot be mounted is refused with one line, and nothing is mounted."""

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.conftest import run_zarrfs
from zarrfs.fuse.mount_table import topmost


@pytest.fixture
def mount_point(tmp_path: Path) -> Path:
    path = tmp_path / "mnt"
    path.mkdir()
    return path


@pytest.fixture
def refuse(mount_point):
    """Runs ``zarrfs mount`` and checks that it refuses, with one line that matches.

    foreground : also with ``-f``, which opens the source in the same way in another process.
    """

    def check(*arguments, says: str, status: int = 1, foreground: bool = False) -> None:
        for option in ((), ("-f",)) if foreground else ((),):
            done = run_zarrfs("mount", *option, *arguments)
            assert re.fullmatch(f"zarrfs: {says}\n", done.stderr), done
            assert (done.returncode, done.stdout) == (status, "")
            assert topmost(str(mount_point)) is None

    return check


def test_mount_points_that_are_none(refuse, source, mount_point):
    mount_point.rmdir()
    refuse(source, mount_point, says=f"mount point {mount_point} does not exist", foreground=True)
    mount_point.write_text("")
    for path in (mount_point, mount_point / "below"):
        refuse(source, path, says=f"mount point {path} is not a directory")


def test_mount_point_is_not_empty(refuse, mount_daemon, source, mount_point):
    (mount_point / "something").write_text("")
    refuse(source, mount_point, says=rf"mount point {mount_point} is not empty .*")
    daemon = mount_daemon(source, "nonempty", at=mount_point)
    assert (daemon.path / "array.bin").stat().st_size == 600_000
    daemon.umount()
    assert (mount_point / "something").exists()


def test_mounted_already(mount_daemon, source):
    daemon = mount_daemon(source)
    done = run_zarrfs("mount", source, daemon.path, "-o", "nonempty")
    assert done.returncode == 1
    assert done.stderr == f"zarrfs: {daemon.path} is mounted already (it shows {source})\n"
    daemon.umount()
    assert topmost(str(daemon.path)) is None


def test_sources_that_are_none(refuse, tmp_path, mount_point):
    missing = tmp_path / "missing.zarr"
    refuse(missing, mount_point, says=rf".*{missing}.*", foreground=True)
    files = tmp_path / "files"
    files.mkdir()
    (files / "bad.zip").write_text("not a zip")
    refuse(files, mount_point, says=".*[zZ]arr.*")
    refuse(files / "bad.zip", mount_point, says=".*bad.zip.*")
    plain = (files / "bad.zip").rename(files / "plain")
    refuse(plain, mount_point, says=f".*{plain}.*")
    refuse("nosuch://host/a.zarr", mount_point, says=".*nosuch.*", status=2)


def test_metadata_that_cannot_be_served(refuse, source, mount_point):
    document = json.loads((source / "zarr.json").read_text())
    document["codecs"].append({"name": "frobnicate"})
    (source / "zarr.json").write_text(json.dumps(document))
    refuse(source, mount_point, says=".*frobnicate.*")
    (source / "zarr.json").write_text('{"zarr_format": 3,')
    refuse(source, mount_point, says=".*zarr.json.*")


def test_source_zip_relative_to_the_working_directory(mount_daemon, source, tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in source.rglob("*"):
            archive.write(path, path.relative_to(source))
    monkeypatch.chdir(tmp_path)
    path = mount_daemon("zip://::file://a.zip").path
    assert len((path / "array.bin").read_bytes()) == 600_000


def test_source_under_the_mount_point(refuse, tmp_path, source, mount_point):
    inside = mount_point / "a.zarr"
    shutil.copytree(source, inside)
    says = f"source {inside} lies under the mount point {mount_point}"
    refuse(inside, mount_point, "-o", "nonempty", says=says)
    link = tmp_path / "link"
    link.symlink_to(inside)
    refuse(link, mount_point, "-o", "nonempty", says=says)


def test_source_and_mount_point_in_each_other(refuse, source):
    refuse(source, source, "-o", "nonempty", says=".* lies under the mount point .*")
    inside = source / "mnt"
    inside.mkdir()
    refuse(source, inside, says=f"mount point {inside} lies inside the source {source}")


def test_rw_of_a_source_that_cannot_be_written(refuse, source, mount_point, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "source"), "zip", source)
    says = rf"cannot be mounted with -o rw: .*{re.escape(archive)}.*: \S.*"
    refuse(archive, mount_point, "-o", "rw", says=says, foreground=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting tmpfs is for root")
def test_rw_of_a_read_only_file_system(refuse, source, mount_point, tmp_path):
    bound = tmp_path / "bound"
    bound.mkdir()
    subprocess.run(["mount", "--bind", source, bound], check=True, timeout=20)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", bound], check=True, timeout=20)
        says = f"cannot be mounted with -o rw: {bound}: its file system is mounted read-only"
        refuse(bound, mount_point, "-o", "rw", says=says)
    finally:
        subprocess.run(["umount", bound], check=True, timeout=20)


def test_wrong_usage(refuse, source, mount_point, tmp_path):
    says = re.escape("unknown option 'memroy'; did you mean memory?")
    refuse(source, mount_point, "-o", "memroy=1G", says=says, status=2, foreground=True)
    says = "option log_file: .*/none/log: No such file or directory"
    refuse(source, mount_point, "-o", f"log_file={tmp_path}/none/log", says=says, status=2)
    missing = "Missing argument 'SOURCE… [MOUNTPOINT]'. (see zarrfs mount --help)"
    refuse(says=re.escape(missing), status=2)
    # Secrets stay secret.
    refuse("a", mount_point, "--storage-option", "hunter2", says="(?!.*hunter2).*", status=2)


def test_umount_of_what_is_not_mounted(mount_point):
    kind = topmost("/proc").type
    for path, says in (
        (mount_point, f"{mount_point} is not mounted"),
        (mount_point / "none", f"{mount_point}/none is not mounted"),
        ("/proc", f"/proc is a mount of {kind}, not of zarrfs"),
    ):
        done = run_zarrfs("umount", path)
        assert (done.returncode, done.stderr) == (1, f"zarrfs: {says}\n")
    assert os.path.exists("/proc/self")


def test_only_consolidated_metadata_where_there_are_none(tmp_path, mount_point, refuse):
    source = tmp_path / "group"
    source.mkdir()
    (source / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    says = ".*group: has no consolidated metadata, and no others are to be used"
    refuse("-o", "consolidated=only", source, mount_point, says=says)
