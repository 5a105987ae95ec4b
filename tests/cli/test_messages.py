"""What the commands say to somebody who made a mistake, and how they say numbers."""

import os
import pty
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.cli.in_process import in_process
from tests.conftest import COMMAND, run_program
from zarrfs.cli.sizes import exact_size, size_text
from zarrfs.counted import counted
from zarrfs.daemon.system.installation import Installation


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("exprot", "a"), "No such command 'exprot'. Did you mean 'export'? (see zarrfs --help)"),
        (("chekc", "a"), "No such command 'chekc'. Did you mean 'check'? (see zarrfs --help)"),
        (("tre", "a"), "No such command 'tre'. Did you mean 'tree'? (see zarrfs --help)"),
        (("xyzzy",), "No such command 'xyzzy'. (see zarrfs --help)"),
        (("create", "a"), "--shape and --dtype are needed: give them, or --like SOURCE"),
        (("create", "a", "--shape", "3"), "--dtype is needed: give it, or --like SOURCE"),
        (("create", "a", "--dtype", "int8"), "--shape is needed: give it, or --like SOURCE"),
        (("resize", "a"), "Missing option '--shape'. (see zarrfs resize --help)"),
        (("info", "--path"), "Option '--path' requires an argument. (see zarrfs info --help)"),
        (
            ("info", "--jsn"),
            "No such option '--jsn'. Did you mean '--json'? (see zarrfs info --help)",
        ),
        (("mounts", "--xyzzy"), "No such option '--xyzzy'. (see zarrfs mounts --help)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_mistake_is_one_line_that_names_what_to_type(arguments, said):
    done = in_process(*arguments)
    assert (done.status, done.stdout, done.stderr) == (2, "", f"zarrfs: {said}\n")


@pytest.mark.parametrize("file", ["-", "/dev/stdout", "/proc/self/fd/1"])
def test_elements_are_not_written_to_a_terminal(tmp_path, file):
    zarr.create_array(tmp_path / "a", data=np.arange(10, dtype="u1"))
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "export", str(tmp_path / "a"), file],
        stdout=theirs,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    where = "standard output" if file == "-" else file
    said = f"zarrfs: {where} is a terminal: name a file, or pipe it to a program\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
    with pytest.raises(OSError, match="Input/output error"):
        os.read(ours, 10)  # nothing was written
    os.close(ours)


@pytest.mark.parametrize("arguments", [["--help"], ["info"], ["info", "--json"]])
def test_an_output_that_is_full_is_one_line(tmp_path, arguments):
    zarr.create_array(tmp_path / "a", shape=3, dtype="u1")
    source = [] if arguments == ["--help"] else [str(tmp_path / "a")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments, *source],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "zarrfs: No space left on device\n")


def test_numbers():
    assert [size_text(n) for n in (0, 1, 128, 1024, 12_000_000)] == [
        *("0 bytes", "1 byte", "128 bytes", "1 KiB", "11.4 MiB"),
    ]
    assert [exact_size(n) for n in (1, 128, 1024)] == ["1 byte", "128 bytes", "1 KiB (1024 bytes)"]
    assert [counted(n, "chunk") for n in (0, 1, 2)] == ["0 chunks", "1 chunk", "2 chunks"]


def test_setup_names_what_other_users_cannot_run(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "closed").mkdir()
    program = tmp_path / "closed" / "zarrfs"
    program.write_text("#!/bin/sh\n")
    (tmp_path / "closed").chmod(0o700)
    closed = Installation(program).closed_to_others()
    # Directories above the one of this test may be closed, too.
    assert closed is not None
    assert program.is_relative_to(closed)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts fusectl")
def test_make_says_when_it_mounts_fusectl(tmp_path):
    for name, status in (("mountpoint", 1), ("mount", 0)):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)
    done = run_program(
        Path(__file__).parents[2] / ".ci/fuse.sh",
        check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert done.stdout == (
        "Mounted fusectl at /sys/fs/fuse/connections, so that a mount that hangs can be ended\n"
    )


def test_setup_takes_its_directories_away_again(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("zarrfs", "mount.zarrfs"):
        (programs / name).write_text("#!/bin/sh\n")
    root = tmp_path / "root"
    root.mkdir()
    installation = Installation(programs / "zarrfs", root=root)
    assert len(installation.install()) == 4
    assert (root / "etc/zarrfs").is_dir()
    assert len(installation.remove()) == 4
    assert list(root.iterdir()) == []
    # What somebody has put there stays.
    installation.install()
    (root / "var/lib/zarrfs/journal").mkdir(parents=True)
    (root / "etc/zarrfs/cells.conf").write_text("SOURCE=…\n")
    installation.remove()
    assert not (root / "var/lib/zarrfs").exists()
    assert [path for path in root.rglob("*") if path.is_file()] == [root / "etc/zarrfs/cells.conf"]
