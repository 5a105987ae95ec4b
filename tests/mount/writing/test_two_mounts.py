"""Two mounts of one store, each of which looks for changes of the other at every open."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import zarr

# Nothing is stored before it is asked for.
OPTIONS = "rw,recheck=always,flush_delay=3600"
# So small that changes are kept in memory of the whole chunk.
LAYOUTS = {"plain": {"chunks": (300,)}, "sharded": {"chunks": (100,), "shards": (300,)}}


@pytest.fixture(params=LAYOUTS)
def array(request, tmp_path) -> zarr.Array:
    return zarr.create_array(
        tmp_path / "source.zarr", data=np.arange(1000, dtype="<u2"), **LAYOUTS[request.param]
    )


@pytest.fixture
def paths(array, mounted) -> list[Path]:
    return [mounted(array.store.root, OPTIONS) / "array.bin" for _ in range(2)]


def read(path: Path, first: int, last: int) -> np.ndarray:
    with open(path, "rb", buffering=0) as file:
        return np.frombuffer(os.pread(file.fileno(), 2 * (last - first), 2 * first), "<u2")


def write(file: int, index: int, value: int) -> None:
    os.pwrite(file, value.to_bytes(2, "little"), 2 * index)


def test_a_chunk_with_changes_shows_those_of_another_mount(array, paths):
    """Also if elements beside the changes were read before: they may have stayed in memory."""
    here, there = paths
    value, expected = 1000, array[...]
    every = ["read", "write", "other"]
    for steps in (s for n in range(1, 4) for s in product(every, repeat=n)):
        changing = os.open(here, os.O_RDWR)
        for step in (*steps, "other"):
            value += 1
            if step == "read":
                read(here, 3, 4)
            elif step == "write":
                write(changing, 1, value)
                expected[1] = value
            else:
                file = os.open(there, os.O_RDWR)
                write(file, 3, value)
                os.close(file)
                expected[3] = value
        assert (read(here, 0, 1000) == expected).all(), steps
        os.close(changing)
        assert (read(there, 0, 1000) == expected).all(), steps
    assert (array[...] == expected).all()


def test_random_steps_of_two_mounts(array, paths):
    """Each changes elements of its own in the same chunks, and reads all."""
    chosen = np.random.default_rng(0)
    seen = [array[...] for _ in paths]
    # Another mount may show these, or may not.
    pending: list[set[int]] = [set(), set()]
    files = [os.open(path, os.O_RDWR) for path in paths]
    for _ in range(150):
        which, step = int(chosen.integers(2)), chosen.choice(["read", "read", "write", "store"])
        first = int(chosen.integers(900))
        if step == "read":
            found = read(paths[which], first, first + 100)
            wrong = np.flatnonzero(found != seen[which][first : first + 100]) + first
            assert not {*wrong.tolist()} - pending[1 - which]
        elif step == "write":
            for index in range(first + (first + which) % 2, first + int(chosen.integers(100)), 2):
                seen[which][index] = chosen.integers(1 << 16)
                write(files[which], index, int(seen[which][index]))
                pending[which].add(index)
        else:
            os.fsync(files[which])
            for index in pending[which]:
                seen[1 - which][index] = seen[which][index]
            pending[which].clear()
    for file in files:
        os.close(file)
    assert (array[...] == np.where(np.arange(1000) % 2, seen[1], seen[0])).all()
