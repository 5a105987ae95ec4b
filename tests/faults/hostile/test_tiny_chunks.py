"""Chunks of a few bytes take no more memory than `-o memory=` allows, whatever an object costs."""

import sys

import pytest

from tests.conftest import run_program, run_python

pytestmark = pytest.mark.timeout(300)

MEMORY = 32 << 20


@pytest.mark.parametrize(
    ("size", "members"),
    [(1 << 19, 1 << 15), (1 << 19, 1 << 10), (4 << 10, 0)],
    ids=["large shards", "small shards", "no shards"],
)
def test_writing_chunks_of_eight_bytes_stays_within_memory(tmp_path, size, members):
    command = [sys.executable, "-m", "tests.faults.hostile.write_tiny_chunks"]
    done = run_program(*command, str(tmp_path), str(size), str(members), str(MEMORY), timeout=250)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MEMORY


@pytest.mark.parametrize(("shape", "chunk"), [("100000", "1"), ("2x50000", "1x1")])
def test_reading_chunks_of_one_byte_takes_few_objects_at_once(tmp_path, shape, chunk):
    """A chunk takes a kilobyte of them while it is read."""
    arguments = [tmp_path, shape, chunk, 100_000, 16 << 20]
    done = run_python(
        "-m", "tests.faults.hostile.read_tiny_chunks", *map(str, arguments), timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MEMORY
