"""What root will run must be root's own."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import run_zarrfs
from zarrfs.daemon.system.ownership import changeable_by_others

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root sets up a system")
NOBODY = 65534


@pytest.fixture
def environment() -> Iterator[Path]:
    """A virtual environment of root's, below directories of root's."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        found = Path(place, "env")
        (found / "bin").mkdir(parents=True)
        (found / "lib").mkdir()
        (found / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (found / "lib/module.py").write_text("")
        for name in ("zarrfs", "mount.zarrfs", "python"):
            (found / "bin" / name).write_text(f"#!{found}/bin/python\n")
            (found / "bin" / name).chmod(0o755)
        yield found


def test_all_of_root(environment):
    assert changeable_by_others(environment / "bin/zarrfs") is None


@pytest.mark.parametrize(
    "name", ["bin/zarrfs", "bin/python", "bin", "lib/module.py", "lib", "pyvenv.cfg", "."]
)
def test_a_part_of_another_user(environment, name):
    os.chown(environment / name, NOBODY, NOBODY)
    reason = changeable_by_others(environment / "bin/zarrfs")
    assert reason == f"{Path(environment / name)} belongs to nobody"


@pytest.mark.parametrize("name", ["bin/zarrfs", "bin/python", "bin", "lib/module.py", "lib"])
def test_a_part_that_everybody_can_write_to(environment, name):
    (environment / name).chmod(0o777)
    reason = changeable_by_others(environment / "bin/zarrfs")
    assert reason == f"every user can write to {environment / name}"


def test_a_directory_above(environment):
    os.chown(environment.parent, NOBODY, NOBODY)
    assert "belongs to nobody" in changeable_by_others(environment / "bin/zarrfs")


def test_a_link_to_what_is_of_another_user(environment):
    target = environment.parent / "theirs"
    target.write_text("#!/bin/sh\n")
    os.chown(target, NOBODY, NOBODY)
    program = environment.parent / "zarrfs"
    program.symlink_to(target)
    assert changeable_by_others(program) == f"{target} belongs to nobody"


def test_setup_refuses_and_places_nothing(environment):
    os.chown(environment / "lib", NOBODY, NOBODY)
    before = subprocess.run(["ls", "-la", "/sbin/"], capture_output=True, check=True).stdout
    program = environment / "bin/zarrfs"
    done = run_zarrfs("setup", "--program", program)
    try:
        assert done.returncode == 1
        assert f"{environment}/lib belongs to nobody" in done.stderr
        assert done.stderr.count("\n") == 1
        after = subprocess.run(["ls", "-la", "/sbin/"], capture_output=True, check=True).stdout
        assert after == before
    finally:
        if not done.returncode:
            run_zarrfs("setup", "--remove", "--program", program)
