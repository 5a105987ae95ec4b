"""A mount that is forked is like one whose Python starts anew; see `tests.forked_mount`."""

import os
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests import forked_mount
from tests.conftest import COMMAND
from tests.forked_mount import forked


@pytest.fixture(autouse=True)
def new_process():
    """What an earlier test imported may have changed the environment."""
    forked_mount.end()


def libraries(pid: int) -> set[str]:
    """The shared objects that a process has loaded, extension modules of Python among them."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {path for line in lines if ".so" in (path := line.rpartition(" ")[2])}


def test_it_has_loaded_what_a_new_one_has(mount_daemon, tmp_path):
    options = "rw,workers=2"
    zarr.create_array(tmp_path / "a", data=np.arange(100, dtype="u2"), chunks=(10,))
    fork = mount_daemon(tmp_path / "a", options)
    new = mount_daemon(tmp_path / "a", options, command=(*COMMAND, "mount"))
    assert b"forked_mount" in Path(f"/proc/{fork.pid}/cmdline").read_bytes()
    assert b"forked_mount" not in Path(f"/proc/{new.pid}/cmdline").read_bytes()
    assert libraries(fork.pid) == libraries(new.pid)
    for daemon in (fork, new):
        assert (daemon.path / "array.bin").read_bytes() == bytes(np.arange(100, dtype="u2"))
    assert libraries(fork.pid) == libraries(new.pid)
    descriptors = [len(os.listdir(f"/proc/{daemon.pid}/fd")) for daemon in (fork, new)]
    assert descriptors[0] == descriptors[1]


def test_errors_are_those_of_the_command_and_other_surroundings_need_a_new_one(
    tmp_path, monkeypatch
):
    arguments = ["mount", str(tmp_path / "none"), str(tmp_path)]
    done = forked(arguments, 60)
    assert done is not None
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"zarrfs: {tmp_path}/none: no such file or directory\n"
    with monkeypatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        assert forked(arguments, 60) is None
        patch.undo()
        patch.chdir(tmp_path)
        assert forked(arguments, 60) is None
    assert forked(arguments, 60) is not None
