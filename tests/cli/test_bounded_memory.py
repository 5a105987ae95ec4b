"""However large the array, the memory is what was allowed."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.conftest import COMMAND

SHAPE = (72, 1024, 512)
BUDGET = 16 << 20
# For what Python and numpy take beside the budget, and what the allocator holds on to.
SLACK = 40 << 20


def peak(*arguments: str | Path, **keywords) -> int:
    """The most bytes of memory that a command had, which must succeed."""
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], **keywords)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


def numbers() -> np.ndarray:
    return np.arange(np.prod(SHAPE), dtype="u2")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="module")
def source(place) -> Path:
    path = place / "a.zarr"
    zarr.create_array(path, data=numbers().reshape(SHAPE), chunks=(8, 128, 128))
    return path


@pytest.fixture(scope="module")
def baseline(place) -> int:
    path = place / "small.zarr"
    zarr.create_array(path, data=np.zeros(10, "u2"))
    return peak("export", path, place / "small.bin", "--memory", BUDGET)


def test_there_and_back(source, baseline, place):
    file = place / "a.bin"
    assert peak("export", source, file, "--memory", BUDGET) < baseline + BUDGET + SLACK
    assert file.stat().st_size == 2 * np.prod(SHAPE)
    with (place / "piped.bin").open("wb") as pipe:
        # A row of chunks does not fit a tile, so that it has to stay in the cache.
        used = peak("export", source, "-", "--memory", BUDGET, stdout=pipe)
    assert used < baseline + BUDGET + SLACK
    subprocess.run(["cmp", file, place / "piped.bin"], check=True, timeout=60)
    target = place / "t.zarr"
    zarr.create_array(target, shape=SHAPE, dtype="u2", chunks=(8, 64, 64), shards=(16, 128, 128))
    assert peak("import", file, target, "--memory", BUDGET) < baseline + BUDGET + SLACK
    assert np.array_equal(zarr.open_array(target, mode="r")[...].reshape(-1), numbers())
