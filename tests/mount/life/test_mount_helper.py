"""Through mount(8), umount(8) and fstab, as root and as somebody else."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import run_program
from tests.mount.programs import NOBODY, for_everyone, write_programs
from zarrfs.cli import mount_caller
from zarrfs.daemon.options.option_parser import parse_options
from zarrfs.daemon.system.installation import Installation
from zarrfs.fuse.mount_table import topmost

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mount(8) is for root")
LINKS = [Path("/sbin/mount.zarrfs"), Path("/sbin/mount.fuse.zarrfs")]


@pytest.fixture
def program(place: Path) -> Path:
    return write_programs(place / "bin")


@pytest.fixture
def helpers(program: Path) -> Iterator[None]:
    """What ``zarrfs setup`` puts in /sbin, which is where mount(8) looks."""
    if any(map(os.path.lexists, LINKS)):
        pytest.skip("zarrfs is installed on this system")
    # Not by the command, which refuses a program that other users can change.
    wrapper = Installation(program).wrapper()
    for link in LINKS:
        link.write_text(wrapper)
        link.chmod(0o755)
    yield
    for link in LINKS:
        link.unlink()


def fine(*command) -> str:
    done = run_program(*command)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@ROOT
def test_mount_and_umount(helpers, source, data, place):
    mnt = place / "mnt"
    mnt.mkdir()
    for kind in ("zarrfs", "fuse.zarrfs"):
        fine("mount", "-t", kind, "-o", "_netdev,noauto,user,x-systemd.automount", source, mnt)
        assert (np.fromfile(mnt / "array.bin", np.uint16) == data.ravel()).all()
        told = fine("findmnt", "-n", "-o", "FSTYPE,SOURCE,TARGET", mnt).split()
        assert told == ["fuse.zarrfs", str(source), str(mnt)]
        assert fine("df", "-T", mnt).splitlines()[1].split()[:2] == [str(source), "fuse.zarrfs"]
        with pytest.raises(OSError, match="Read-only"):
            (mnt / "array.bin").open("r+b")
        fine("umount", mnt)
        assert topmost(str(mnt)) is None


@ROOT
@pytest.mark.parametrize("arguments", [("-o", "nofail,rw"), ("--options=ro", "-w")], ids=" ".join)
def test_rw_must_be_said(helpers, source, place, arguments):
    """mount(8) says rw to its helper whether anybody said so or not."""
    mnt = place / "mnt"
    mnt.mkdir()
    fine("mount", "-t", "zarrfs", *arguments, source, mnt)
    with open(mnt / "array.bin", "r+b") as file:
        file.write(b"\7\0")
    fine("umount", mnt)


@ROOT
def test_fstab(helpers, source, place):
    mnt, fstab = place / "mnt", place / "fstab"
    mnt.mkdir()
    fstab.write_text(f"{source} {mnt} zarrfs noauto,rw,order=F,uid=7 0 0\n")
    fine("mount", "-T", fstab, mnt)
    assert (mnt / "array.bin").stat().st_uid == 7
    assert os.access(mnt / "array.bin", os.W_OK)
    fine("umount", mnt)


@ROOT
def test_failures_are_told(helpers, source, place):
    mnt = place / "mnt"
    mnt.mkdir()
    done = run_program("mount", "-t", "zarrfs", place / "none", mnt)
    assert (done.returncode, "no such file or directory" in done.stderr) == (32, True)
    done = run_program("mount", "-t", "zarrfs", "-o", "memroy=1G", source, mnt)
    assert (done.returncode, done.stderr) == (
        1,
        "mount.zarrfs: unknown option 'memroy'; did you mean memory?\n",
    )
    done = run_program("mount.zarrfs", source, mnt, "-o", "remount,rw")
    says = "mount.zarrfs: a mount cannot be changed: unmount it and mount it again\n"
    assert (done.returncode, done.stderr) == (1, says)


@ROOT
def test_only_what_is_ours_is_replaced(program, place):
    root = place / "root"
    (root / "sbin").mkdir(parents=True)
    (root / "sbin/mount.zarrfs").write_text("#!/bin/sh\n")
    done = run_program(program, "setup", "--root", root)
    assert done.returncode == 1
    assert "exists and is not a file of zarrfs" in done.stderr
    (root / "sbin/mount.zarrfs").unlink()
    for _ in range(2):
        fine(program, "setup", "--root", root)
    assert (
        f"helper={program.with_name('mount.zarrfs')}"
        in (root / "sbin/mount.fuse.zarrfs").read_text().splitlines()
    )
    # What an earlier version linked is replaced.
    (root / "sbin/mount.zarrfs").unlink()
    (root / "sbin/mount.zarrfs").symlink_to(program.with_name("mount.zarrfs"))
    fine(program, "setup", "--root", root)
    assert not (root / "sbin/mount.zarrfs").is_symlink()
    fine(program, "setup", "--root", root, "--remove")
    assert [path for path in root.rglob("*") if path != root / "sbin"] == []


AS_SOMEBODY = """
set -eu
mount --make-rprivate /
# Some containers keep the device to root alone; elsewhere it is open to all.
mknod dev c 10 229; chmod 666 dev; mount --bind dev /dev/fuse
mount --bind fstab /etc/fstab
su_() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$PWD/home" "$@"; }
trap 'umount -i -l "$PWD/mnt" 2>/dev/null || true' EXIT
"""


@ROOT
@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("su_ bin/zarrfs mount a.zarr mnt", "su_ bin/zarrfs umount mnt"),
        ("su_ mount.zarrfs a.zarr mnt", "su_ fusermount3 -u mnt"),
        ("su_ mount $PWD/mnt", "su_ umount $PWD/mnt"),
    ],
    ids=["zarrfs", "helper", "fstab"],
)
def test_somebody_else(helpers, source, place, how, end):
    if not for_everyone():
        pytest.skip("only root can enter the directories that zarrfs is in")
    shutil.copytree(source, place / "a.zarr")
    for name in ("mnt", "home"):
        (place / name).mkdir()
        os.chown(place / name, NOBODY, NOBODY)
    (place / "fstab").write_text(f"{place}/a.zarr {place}/mnt zarrfs noauto,user 0 0\n")
    script = f"""{AS_SOMEBODY}
    {how}
    findmnt -n -o FSTYPE,SOURCE mnt
    su_ stat -c '%u:%g %a' mnt/array.bin
    su_ md5sum < a.zarr/zarr.json; su_ cat mnt/zarr.json | md5sum
    # allow_other was not given: not even root can look.
    stat mnt/array.bin 2>&1 || true
    {end}
    findmnt mnt || echo gone
    """
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/sbin:/usr/sbin:/usr/bin"}
    done = run_program("unshare", "-m", "/bin/bash", "-c", script, cwd=place, env=environment)
    said = done.stdout.splitlines()
    assert done.returncode == 0, done
    assert said[0].split() == ["fuse.zarrfs", f"{place}/a.zarr"]
    assert said[1] == f"{NOBODY}:{NOBODY} 444"
    assert said[2] == said[3]
    assert "Permission denied" in said[4]
    assert said[5:] == ["gone"]


@ROOT
@pytest.mark.parametrize("closed", ["helper", "interpreter", "missing"])
def test_what_somebody_cannot_run_is_one_line(place, closed):
    """The helper, or the Python that runs it, is in a directory of another user's."""
    secret = place / "secret"
    secret.mkdir(mode=0o700)
    helper = (secret if closed == "helper" else place) / "mount.zarrfs"
    interpreter = secret / "python3"
    interpreter.symlink_to("/bin/true")
    if closed != "missing":
        helper.write_text(f"#!{interpreter} -E\nmain()\n")
        helper.chmod(0o755)
    wrapper = place / "wrapper"
    wrapper.write_text(Installation(helper.with_name("zarrfs")).wrapper())
    wrapper.chmod(0o755)
    if closed == "missing":
        done = run_program(wrapper, "a", "b")
        what, advice = helper, "it is missing; install zarrfs and run zarrfs setup again"
        who = "root"
    else:
        assert run_program(wrapper, "a", "b").returncode == 0
        done = run_program(wrapper, "a", "b", user=NOBODY, group=NOBODY, extra_groups=[])
        what = helper if closed == "helper" else interpreter
        advice = "make it readable for all users, or install zarrfs in another place"
        who = "nobody"
    assert done.returncode == 32
    assert done.stderr.startswith(
        f"mount.zarrfs: {who} cannot use {what}, which zarrfs needs: {advice}"
    )
    assert done.stderr.count("\n") == 1


def test_what_mount_fuse_calls(program, source, place):
    """mount.fuse3 knows nothing of subcommands."""
    mnt = place / "mnt"
    mnt.mkdir()
    fine(program, source, mnt, "-o", "ro,dev,suid")
    assert topmost(str(mnt)) is not None
    fine(program, "umount", mnt)


def test_what_mount_passes_on_is_understood():
    text = (
        "rw,noexec,nosuid,nodev,user=somebody,_netdev,nofail,x-systemd.automount,"
        "x-systemd.idle-timeout=60,x-gvfs-show,comment=hello,noauto,relatime,helper=zarrfs"
    )
    assert parse_options([text]) == parse_options(["rw"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/a /m\\040p zarrfs rw 0 0", True),
        ("/a /m\\040p zarrfs defaults 0 0", False),
        ("/a /other zarrfs rw", False),
        ("# /a /m\\040p zarrfs rw", False),
        ("/a /m\\040p zarrfs rw,ro", False),
    ],
)
def test_lines_of_fstab(tmp_path, line, expected):
    fstab = tmp_path / "fstab"
    fstab.write_text(f"{line}\n")
    assert mount_caller._fstab_says(str(fstab), "/m p") is expected
