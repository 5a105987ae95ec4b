"""What is installed for a demo and for everything else, and what `make test` says of itself."""

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import run_program

CI = Path(__file__).parents[2] / ".ci"


def pinned(name: str) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", (CI / name).read_text(), re.MULTILINE)
    return dict(found)


def test_the_demo_has_the_versions_that_the_tests_have():
    demo, everything = pinned("demo.lock"), pinned("requirements.lock")
    assert {"numpy", "pyfuse3", "trio", "zarr"} <= set(demo)
    assert {name: everything.get(name) for name in demo} == demo


def test_the_demo_needs_no_tool_of_the_tests():
    demo = set(pinned("demo.lock"))
    assert demo.isdisjoint({"moto", "mypy", "pytest", "ruff", "tensorstore", "zarrs", "s3fs"})
    assert len(demo) < 40


@pytest.fixture
def timed(tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".venv").mkdir()
    script = shutil.copy(CI / "timed.sh", tmp_path / ".ci")

    def run(*command: str, **environment: str) -> tuple[int, str]:
        done = run_program(script, *command, env=environment)
        return done.returncode, done.stdout.splitlines()[0]

    return run


def test_how_long_all_tests_take_is_said_before(timed, tmp_path):
    kept = tmp_path / ".venv" / ".test-minutes"
    assert timed("true") == (0, "The tests take 10 to 20 minutes on two processors")
    assert kept.read_text().strip().isdigit()
    kept.write_text("777\n")
    # Neither some of the tests nor a run that broke off tells how long all of them take.
    assert timed("true", ARGS="-k some") == (0, "The tests took 777 minutes here the last time")
    assert timed("sh", "-c", "exit 2") == (2, "The tests took 777 minutes here the last time")
    assert kept.read_text() == "777\n"
    assert timed("false") == (1, "The tests took 777 minutes here the last time")
    assert kept.read_text() != "777\n"
