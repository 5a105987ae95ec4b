"""Mount points that zarrfs makes: printed, not writable, and removed at the end."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import COMMAND, run_program, run_zarrfs
from tests.mount.life.test_mount_helper import AS_SOMEBODY
from tests.mount.programs import NOBODY, for_everyone, write_programs
from zarrfs.daemon import own_mount_point
from zarrfs.daemon.own_mount_point import make_mount_point, mount_name
from zarrfs.errors import MountError
from zarrfs.fuse.mount_table import topmost
from zarrfs.fuse.unmount import unmount

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="/run/zarrfs is root's")


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Iterator[Path]:
    """A source whose name no other mount has."""
    path = tmp_path / f"own-{os.getpid()}.zarr"
    source.rename(path)
    yield path
    for place in Path("/run/zarrfs").glob(f"{path.stem}*"):
        while topmost(str(place)) is not None:
            unmount(str(place), lazy=True)
        place.rmdir()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("cells.zarr", "cells"),
        ("/data/cells.zarr/", "cells"),
        ("/data/my cells (2).zarr", "my_cells_2"),
        ("/data/plain", "plain"),
        ("s3://bucket/a/cells.zarr", "cells"),
        ("s3://bucket", "bucket"),
        ("https://user:secret@example.org/cells.zarr?token=secret#x", "cells"),
        ("zip://::file:///data/cells.zarr.zip", "cells"),
        ("/data/.zarr", "zarr"),
        ("weather.nc", "weather"),
        ("/", "zarr"),
        ("é.zarr", "zarr"),
        ("x" * 300 + ".zarr", "x" * 64),
    ],
)
def test_names(source, name):
    assert mount_name(source) == name


@ROOT
def test_made_printed_and_removed(own, data):
    done = run_zarrfs("mount", own)
    path = Path(done.stdout.rstrip("\n"))
    assert (done.returncode, done.stderr) == (0, "")
    assert path == Path("/run/zarrfs", own.stem)
    assert (path / "array.bin").read_bytes() == data.tobytes()
    again = Path(run_zarrfs("mount", own).stdout.rstrip("\n"))
    assert again == path.with_name(f"{own.stem}-2")
    for place in (again, path):
        assert run_zarrfs("umount", place).returncode == 0
        assert not place.exists()


@ROOT
def test_what_a_killed_daemon_leaves_is_used_again(own):
    path = Path(run_zarrfs("mount", own).stdout.rstrip("\n"))
    pid = int((path / ".zarrfs/config.json").read_text().partition('"pid": ')[2].partition(",")[0])
    killed = os.pidfd_open(pid)
    signal.pidfd_send_signal(killed, signal.SIGKILL)
    os.close(killed)
    again = run_zarrfs("mount", own)
    assert (again.stdout, again.stderr) == (f"{path}\n", "")
    assert run_zarrfs("umount", path).returncode == 0
    assert not path.exists()


@ROOT
def test_nothing_is_left_of_a_mount_that_fails(tmp_path):
    name = f"nothing-{os.getpid()}"
    failed = run_zarrfs("mount", tmp_path / f"{name}.zarr")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert not Path("/run/zarrfs", name).exists()


@ROOT
def test_in_the_foreground(own):
    with subprocess.Popen([*COMMAND, "mount", "-f", str(own)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:  # fmt: skip
        assert process.stdout is not None
        path = Path(process.stdout.readline().rstrip("\n"))
        assert (path / "array.bin").exists()
        process.terminate()
        assert process.wait(60) == 0
    assert not path.exists()


def test_directories_of_others_are_refused(tmp_path, monkeypatch):
    """A directory in /tmp that somebody else made, or can change, is not used."""
    theirs = tmp_path / "zarrfs"
    theirs.mkdir(mode=0o777)
    theirs.chmod(0o777)
    monkeypatch.setattr(own_mount_point.os, "geteuid", lambda: 4242)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    fallback = Path("/tmp/zarrfs-4242")
    fallback.symlink_to(tmp_path)
    try:
        with pytest.raises(MountError, match="cannot make a mount point in /tmp/zarrfs-4242"):
            make_mount_point("cells.zarr")
    finally:
        fallback.unlink()
    assert list(theirs.iterdir()) == []


@ROOT
def test_for_who_is_not_root(source, data, tmp_path_factory):
    """In $XDG_RUNTIME_DIR; the directory cannot be written to before, in between and after."""
    if not for_everyone():
        pytest.skip("only root can enter the directories that zarrfs is in")
    place = Path("/tmp", f"zarrfs-own-{os.getpid()}")
    place.mkdir(mode=0o755)
    try:
        write_programs(place / "bin")
        shutil.copytree(source, place / "cells.zarr")
        for name in ("mnt", "home", "run"):
            (place / name).mkdir()
            os.chown(place / name, NOBODY, NOBODY)
        script = f"""{AS_SOMEBODY.replace("mount --bind fstab /etc/fstab", "")}
        export XDG_RUNTIME_DIR=$PWD/run
        su_ bin/zarrfs mount cells.zarr
        su_ md5sum < cells.zarr/zarr.json; su_ cat run/zarrfs/cells/zarr.json | md5sum

        su_ bin/zarrfs umount run/zarrfs/cells
        ls run/zarrfs
        # One's own mount point that is not writable, too.
        chmod 555 mnt
        su_ bin/zarrfs mount cells.zarr mnt
        su_ bin/zarrfs umount mnt
        stat -c '%a' mnt
        su_ touch mnt/file 2>&1 || true
        """
        done = run_program("unshare", "-m", "/bin/bash", "-c", script, timeout=90, cwd=place)
        assert done.returncode == 0, done
        said = done.stdout.splitlines()
        assert said[0] == f"{place}/run/zarrfs/cells"
        assert said[1] == said[2]
        assert said[3] == "555"
        assert "Permission denied" in said[4]
    finally:
        shutil.rmtree(place)
