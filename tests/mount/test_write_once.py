"""Overwriting a whole array in order stores each chunk or shard exactly once."""

import os

import numpy as np
import pytest
import zarr

from tests.mount.arrays import stored
from tests.mount.puts import Puts

SHAPE = (64, 256, 256)
KINDS = {
    "plain": {"chunks": (16, 64, 256)},
    "sharded": {"chunks": (8, 64, 64), "shards": (32, 128, 256)},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["array.bin", "array.npy"])
def test_a_sequential_overwrite_stores_each_object_once(mounted, tmp_path, kind, name):
    data = np.random.default_rng(0).integers(0, 4, SHAPE, np.uint8)
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=SHAPE, dtype="u1", **KINDS[kind])[...] = data
    objects = {str(p.relative_to(source)) for p in source.glob("c/*/*/*")}
    # The delay would store a chunk in two halves on a machine that is slow enough.
    path = mounted(source, "rw,flush_delay=3600,memory=64M") / name
    old = path.read_bytes()
    new = old[: -data.nbytes] + (3 - data).tobytes()
    with Puts(source) as puts, open(path, "r+b", buffering=0) as file:
        for start in range(0, len(new), 100_003):
            os.pwrite(file.fileno(), new[start : start + 100_003], start)
    assert puts.counts == dict.fromkeys(objects, 1)
    assert (stored(source) == 3 - data).all()


def test_shards_that_memory_has_no_room_for_are_stored_once(mounted, tmp_path):
    """It has room for a row of inner chunks, which is an eighth of each shard."""
    data = np.random.default_rng(0).integers(0, 4, SHAPE, np.uint8)
    source = tmp_path / "a.zarr"
    layout = {"chunks": (8, 64, 64), "shards": (64, 128, 128)}
    zarr.create_array(source, shape=SHAPE, dtype="u1", **layout)[...] = data
    objects = {str(p.relative_to(source)) for p in source.glob("c/*/*/*")}
    path = mounted(source, "rw,flush_delay=3600,memory=16M") / "array.bin"
    new = (3 - data).tobytes()
    with Puts(source) as puts, open(path, "r+b", buffering=0) as file:
        for start in range(0, len(new), 1 << 16):
            os.pwrite(file.fileno(), new[start : start + (1 << 16)], start)
    assert puts.counts == dict.fromkeys(objects, 1)
    assert (stored(source) == 3 - data).all()


def test_whole_chunks_are_stored_before_anyone_asks(mounted, tmp_path):
    """More than the budget for changes can be written, because what is whole leaves early."""
    shape = (48, 1024, 1024)
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=shape, chunks=(4, 512, 512), dtype="u1", compressors=None)
    path = mounted(source, "rw,flush_delay=3600,memory=32M") / "array.bin"
    plane = np.arange(1 << 20, dtype=np.uint32).astype(np.uint8).reshape(shape[1:])
    with open(path, "r+b", buffering=0) as file:
        for i in range(shape[0]):
            os.pwrite(file.fileno(), (plane + np.uint8(i)).tobytes(), i << 20)
        os.fsync(file.fileno())
    found = stored(source)
    assert all((found[i] == plane + np.uint8(i)).all() for i in range(shape[0]))
