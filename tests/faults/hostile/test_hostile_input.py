"""Data from anyone: one clear error, in little memory and little time, and the process lives."""

import os
import signal
import subprocess
import sys

import pytest

from .attacks import ATTACKS

pytestmark = pytest.mark.timeout(120)

# Each of these took more than ten times as much, or crashed.
ROOM = 350 << 20
SMALL_ROOM = 32 << 20
SECONDS = 10
WORDS = {
    "zfp-expert-mode": "another mode",
    "zfp-another-mode": "another mode",
    "zfp-rate-of-100000": "rate 100000 is not possible",
    "zfp-rate-of-128": "zfp:",
    "zfp-rate-below-its-header": "rate 0.25 is not possible",
    "zip-member-in-bzip2": "the checksum of c/0 is wrong",
    "zip-member-in-lzma": "the checksum of c/0 is wrong",
    "zip-member-in-lzma-with-a-giant-dictionary": "bytes for its dictionary, at most",
    "attributes-of-many-arrays": "-o memory=",
    "attributes-nested-deeply": "nested deeper",
    "twenty-thousand-codecs": "20001 codecs, at most 64",
    "twenty-thousand-filters": "20000 codecs, at most 63",
    "references-with-a-width": "not a plain template",
    "references-generated-from-a-long-template": "have more than",
    "references-generated-by-many-expressions": "100000 expressions",
    "parquet-of-many-rows": "a/refs.0.parq",
    "parquet-of-large-inlined-data": "a/refs.0.parq",
    "parquet-with-metadata-of-empty-lists": "once it is parsed",
}
"""What the error says, where it is not told below for many."""


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """``read(name)``: all that a fork of one process says of it."""
    errors = (tmp_path_factory.mktemp("attacks") / "stderr").open("w+")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.hostile.attacks"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        start_new_session=True,
    )  # fmt: skip

    def read(name: str) -> list[str]:
        room = SMALL_ROOM if name.startswith("zip-") else ROOM
        process.stdin.write(f"{name} {room} {SECONDS}\n")
        process.stdin.flush()
        said = []
        for line in process.stdout:
            if line.strip().lstrip("-").isdecimal():
                errors.seek(0)
                assert line == "0\n", (line, errors.read()[-2000:])
                return said
            said.append(line)
        raise AssertionError("the process has ended")

    yield read
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    errors.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_refused_in_little_memory_and_time(read, name):
    (said,) = read(name)
    assert said.strip() != "served"
    assert "MemoryError" not in said
    assert len(said) < 1500
    assert WORDS.get(name, "") in said
