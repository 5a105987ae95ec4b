"""``chunks/`` and ``shards/``: always whole, whatever is stored behind the array's end."""

from itertools import product

import numpy as np
import pytest
import zarr

from tests.fs.documents import array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from tests.model.arrays import chunk_at
from zarrfs.errors import EntryNotFound

pytestmark = pytest.mark.timeout(60)

SHAPE, CHUNKS, SHARDS, FILL = (7, 10), (2, 3), (4, 6), -5


def numbers():
    return np.arange(70, dtype="<i4").reshape(SHAPE)


def indices(shape):
    return product(*(range(-(-s // n)) for s, n in zip(SHAPE, shape, strict=True)))


@pytest.fixture(params=[None, SHARDS], ids=["plain", "sharded"])
def source(request, tmp_path):
    path = tmp_path / "a"
    zarr.create_array(path, data=numbers(), chunks=CHUNKS, shards=request.param, fill_value=FILL)
    return path, request.param


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byteorder", ["little", "big"])
def test_every_file(mount, source, order, byteorder):
    path, shards = source
    m = mount(path, order=order, byteorder=byteorder)
    dtype = ">i4" if byteorder == "big" else "<i4"
    for name, shape in [("chunks", CHUNKS), *([("shards", SHARDS)] if shards else [])]:
        for index in indices(shape):
            file = f"{name}/{index[0]}/{index[1]}"
            # Chunk files are in C order whatever array.bin is in.
            expected = chunk_at(numbers(), FILL, index, shape)
            assert m.read(file) == expected.astype(dtype).tobytes(), file


def test_the_overhang_of_a_shard(mount):
    """Inner chunks beyond the array are stored, and hold other bytes than the fill value."""
    inner = [np.full(2, i, "<i2").tobytes() for i in range(1, 5)]
    document = array_document((11,), (8,), codecs=[sharding((2,))])
    m = mount(MemoryStore({"zarr.json": document, "c/1": shard(inner)}))
    assert m.read("shards/1") == np.array([1, 1, 2, 7, 7, 7, 7, 7], "<i2").tobytes()
    assert m.read("chunks/5") == np.array([2, 7], "<i2").tobytes()
    # Chunks that hold nothing of the array are none of its chunks.
    assert m.ls("chunks") == [str(i) for i in range(6)]
    assert m.read("array.bin") == np.array([7] * 8 + [1, 1, 2], "<i2").tobytes()


@pytest.mark.parametrize("name", [
    "chunks/00", "chunks/-1", "chunks/\uff11", "chunks/4", "chunks/0/4",
    "chunks/0/99999999999999999",
    "chunks/0/" + "9" * 300, "chunks/..", "chunks/0/..", "chunks/+1", "chunks/a", "chunks/0x0",
    "shards/2", "shards/0/2", "shards/a", "chunks/ 0",
])  # fmt: skip
def test_no_other_names(mount, source, name):
    with pytest.raises(EntryNotFound):
        mount(source[0]).stat(name)
