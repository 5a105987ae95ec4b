"""Programs that change a file in place: they read a block, and write it, before the next one."""

import numpy as np
import pytest

from tests.fs.documents import array_document
from tests.fs.write_store import WriteStore
from zarrfs.cache.write.gathering import Gathering
from zarrfs.views import flat
from zarrfs.views.slabs import sequential_writes, slab_grid

pytestmark = pytest.mark.timeout(60)

SHAPE, CHUNKS = (64, 32, 64), (16, 8, 64)
OLD = np.random.default_rng(0).integers(0, 1 << 15, SHAPE, "<u2")
# A plane, of which each chunk has sixteen.
BLOCK = 2 * 32 * 64
GRID = (4, 4, 1)
PLACES = {
    "/".join(map(str, ("c", *index))): tuple(
        [slice(i * n, (i + 1) * n) for i, n in zip(index, CHUNKS, strict=True)]
    )
    for index in np.ndindex(*GRID)
}


@pytest.fixture
def turns(opened, monkeypatch):
    """A mount where two blocks in a row make a slab, and how often a slab of writes was begun."""
    for name in ("_BELIEVED", "_BELIEVED_AT_START"):
        monkeypatch.setattr(flat, name, BLOCK)
    # Each row of chunks is a slab.
    monkeypatch.setattr(slab_grid, "SMALL_SLAB", 1)
    monkeypatch.setattr(sequential_writes, "_BELIEVED", 2 * BLOCK)
    begun: list[int] = []
    begin = Gathering.begin

    def count(self, file, start, size, *, wait) -> bool:
        begun.append(start)
        return begin(self, file, start, size, wait=wait)

    monkeypatch.setattr(Gathering, "begin", count)
    store = WriteStore({"zarr.json": array_document(SHAPE, CHUNKS)})
    for key, where in PLACES.items():
        store.replace(key, OLD[where].tobytes())
    return opened(store), store, begun


def new_of(block: bytes) -> bytes:
    return (np.frombuffer(block, "<u2") + 1).tobytes()


def test_each_chunk_is_decoded_about_once(turns):
    mount, store, _ = turns
    file = mount.edit("array.bin")
    for offset in range(0, OLD.nbytes, BLOCK):
        block = file.read(offset, BLOCK)
        assert block == OLD.tobytes()[offset : offset + BLOCK]
        file.write(offset, new_of(block))
    # Slabs were tried in the beginning, once in four times as many bytes each time.
    assert mount.tree.stats.loads <= 2 * np.prod(GRID)
    file.close()
    for key, where in PLACES.items():
        assert store.objects[key] == (OLD[where] + 1).tobytes()


def test_writes_that_are_read_between_are_not_gathered_again_and_again(turns):
    mount, _, begun = turns
    file = mount.edit("array.bin")
    for offset in range(0, OLD.nbytes, 2 * BLOCK):
        for part in (offset, offset + BLOCK):
            file.write(part, new_of(OLD.tobytes()[part : part + BLOCK]))
        file.read(0, 512)
    assert len(begun) <= 4
    begun.clear()
    # Without readers, from the next slab on.
    for offset in range(0, OLD.nbytes, BLOCK):
        file.write(offset, OLD.tobytes()[offset : offset + BLOCK])
    assert len(begun) >= GRID[0] - 1
    assert mount.read("array.bin") == OLD.tobytes()


def test_a_scan_is_believed_again_once_it_has_gone_through_a_slab(turns):
    """A write now and then does not keep a reader from the slabs that it needs."""
    mount, _, _ = turns
    file, other = mount.edit("array.bin"), mount.edit("array.bin")
    slab = CHUNKS[0] * BLOCK
    data = bytearray(OLD.tobytes())
    for offset in range(0, OLD.nbytes, BLOCK):
        if offset % slab == 0:
            other.write(OLD.nbytes - 2, bytes([offset // slab, 0]))
            data[-2:] = offset // slab, 0
        assert file.read(offset, BLOCK) == data[offset : offset + BLOCK]
    # Each write has one slab decoded again, and no more than that.
    assert mount.tree.stats.loads <= 3 * np.prod(GRID)
    file.close()
    other.close()
