"""Very many chunks of one element are read in bulk."""

import os

import numpy as np
import pytest

from tests.fs.documents import array_document, sharding
from tests.fs.loop import Loop
from tests.fs.mounted import Mounted
from zarrfs.errors import ChunkError
from zarrfs.fs.config import FileSystemConfig
from zarrfs.store.local.local import LocalStore

COUNT = 18_000
MOST_REQUESTS = COUNT // 20
"""One request for each chunk would be 18 000."""

GRIDS = {
    "one axis": ((COUNT,), (1,), {}),
    "two axes": ((6, COUNT // 6), (1, 1), {}),
    "many axes": ((2,) * 13, (1,) * 13, {}),
    "no directories": ((COUNT,), (1,), {"chunk_key_encoding": {"name": "v2"}}),
    "shards": ((COUNT,), (100,), {"codecs": [sharding((1,))]}),
    "shards of one": ((COUNT,), (1,), {"codecs": [sharding((1,))]}),
    "rectilinear": ((COUNT,), (1,), {
        "chunk_grid": {"name": "rectilinear", "configuration": {
            "kind": "inline", "chunk_shapes": [[[1, COUNT // 3], [2, COUNT // 3]]]}}}),
}  # fmt: skip


@pytest.fixture(params=GRIDS)
def grid(request, tmp_path):
    """A directory with an array of which three chunks may be stored."""
    shape, chunks, members = GRIDS[request.param]
    (tmp_path / "zarr.json").write_bytes(array_document(shape, chunks, **members))
    return tmp_path, shape


def _mounted(root, **config) -> Mounted:
    for directory, _, _ in os.walk(root):
        os.utime(directory, (0, 0))
    return Mounted(Loop(), LocalStore(root), FileSystemConfig(memory=64 << 20, **config))


def _requests(mounted: Mounted) -> int:
    return mounted.stats()["store"]["requests"]


def test_absent_chunks_take_few_requests(grid):
    root, shape = grid
    mounted = _mounted(root)
    expected = np.full(shape, 7, "<i2").tobytes()
    assert mounted.read("array.bin") == expected
    # Also by one large request.
    file = mounted.open("array.bin")
    assert file.read(0, len(expected)) == expected
    assert _requests(mounted) < MOST_REQUESTS


def test_the_few_chunks_that_are_stored(tmp_path):
    (tmp_path / "zarr.json").write_bytes(array_document((COUNT,), (1,)))
    (tmp_path / "c").mkdir()
    expected = np.full(COUNT, 7, "<i2")
    for number in (0, 1, 12_345, COUNT - 1):
        (tmp_path / f"c/{number}").write_bytes((-number % 999).to_bytes(2, "little"))
        expected[number] = -number % 999
    mounted = _mounted(tmp_path)
    assert mounted.read("array.bin") == expected.tobytes()
    assert _requests(mounted) < MOST_REQUESTS
    # One that is stored later.
    (tmp_path / "c/777").write_bytes(b"\1\0")
    os.utime(tmp_path / "c", (1, 1))
    expected[777] = 1
    fresh = _mounted(tmp_path)
    assert fresh.open("array.bin").read(0, 2 * COUNT) == expected.tobytes()


def test_what_is_no_chunk_is_an_error(tmp_path):
    (tmp_path / "zarr.json").write_bytes(array_document((COUNT,), (1,)))
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c/4321")
    mounted = _mounted(tmp_path)
    with pytest.raises(ChunkError, match="4321"):
        mounted.open("array.bin").read(0, 2 * COUNT)


def test_a_missing_chunk_that_is_an_error(tmp_path):
    (tmp_path / "zarr.json").write_bytes(array_document((COUNT,), (1,)))
    with pytest.raises(ChunkError, match="is not stored"):
        _mounted(tmp_path, fill_missing=False).open("array.bin").read(0, 2 * COUNT)
