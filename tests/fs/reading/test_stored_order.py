"""Chunks that a codec has transposed: small reads take their parts from them as they are stored."""

import json

import numpy as np
import pytest

from tests.fs.documents import LITTLE, ZSTD, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from tests.fs.write_store import WriteStore
from tests.soak import TIMES
from zarrfs.cache.read import chunk_loads
from zarrfs.cache.read.array_chunks import CachedChunk
from zarrfs.format.metadata.v3 import parse_node

SHAPE, CHUNKS = (40, 30, 50), (16, 12, 20)
CHUNK_BYTES = 2 * 16 * 12 * 20
VALUES = np.random.default_rng(0).integers(-(1 << 15), 1 << 15, SHAPE, "<i2")
BYTES = VALUES.tobytes()
BIG = {"name": "bytes", "configuration": {"endian": "big"}}


def turned(*order: int):
    return {"name": "transpose", "configuration": {"order": order}}


LAYOUTS = {
    "reversed": [turned(2, 1, 0), LITTLE, ZSTD],
    "outer axes": [turned(1, 0, 2), LITTLE],
    "big": [turned(2, 0, 1), BIG, ZSTD],
}


@pytest.fixture(params=[*LAYOUTS, "shards"])
def store(request):
    """Each array in chunks; the first one in shards of eight inner chunks, too."""
    sharded = request.param == "shards"
    codecs = LAYOUTS["reversed" if sharded else request.param]
    plain = array_document(SHAPE, CHUNKS, codecs=codecs)
    codec = parse_node(json.loads(plain), "zarr.json").layout.chunk_codec(CHUNKS)

    def encoded(index) -> bytes | None:
        inside = [slice(i * c, (i + 1) * c) for i, c in zip(index, CHUNKS, strict=True)]
        part = VALUES[tuple(inside)]
        if not part.size:
            return None
        chunk = np.zeros(CHUNKS, "<i2")
        chunk[tuple(map(slice, part.shape))] = part
        return bytes(codec.encode(chunk))

    counts = [-(-n // c) for n, c in zip(SHAPE, CHUNKS, strict=True)]
    if not sharded:
        objects = {f"c/{i}/{j}/{k}": encoded((i, j, k)) for i, j, k in np.ndindex(*counts)}
        return MemoryStore({"zarr.json": plain, **objects})
    objects = {
        f"c/{i}/{j}/{k}": shard(
            [encoded((2 * i + u, 2 * j + v, 2 * k + w)) for u, v, w in np.ndindex(2, 2, 2)]
        )
        for i, j, k in np.ndindex(*(-(-n // 2) for n in counts))
    }
    shape = tuple(2 * n for n in CHUNKS)
    document = array_document(SHAPE, shape, codecs=[sharding(CHUNKS, codecs=codecs)])
    return MemoryStore({"zarr.json": document, **objects})


@pytest.fixture
def kept(monkeypatch):
    """Chunks that came into memory, whether each is in C order."""
    found = []

    class Recorded(CachedChunk):
        def __init__(self, *args, **how) -> None:
            super().__init__(*args, **how)
            found.append(bool(self.chunk.flags.c_contiguous))

    monkeypatch.setattr(chunk_loads, "CachedChunk", Recorded)
    return found


def test_a_small_read_leaves_chunks_as_they_are(mount, store, kept):
    m = mount(store)
    file = m.open("array.bin")
    start = 2 * (50 * 17 + 3)
    assert file.read(start, 200) == BYTES[start : start + 200]
    loads = m.stats()["cache"]["loads"]
    assert kept == [False] * loads
    # All further ones, of whatever size, take their parts from these chunks.
    for size in (1, 7, 200, 500):
        assert file.read(start, size) == BYTES[start : start + size]
    row = 2 * 50 * (30 + 12)
    assert file.read(row, 1000) == BYTES[row : row + 1000]
    wanted = VALUES[:16, 12:24, :20].tobytes()
    assert m.read("chunks/0/1/0") == wanted
    assert m.stats()["cache"]["loads"] == loads


def test_a_large_read_brings_them_into_order(mount, store, kept):
    m = mount(store)
    assert m.read("chunks/0/1/0") == VALUES[:16, 12:24, :20].tobytes()
    assert kept == [True]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(TIMES))
def test_small_reads_and_writes_of_any_place(opened, store, seed):
    """With larger ones between them, and chunks that go and come."""
    m = opened(WriteStore(store.objects), memory=4 << 20)
    rng = np.random.default_rng(seed)
    values = VALUES.copy()
    content = values.reshape(-1).view("u1")
    file, chunk = m.edit("array.bin"), m.open("chunks/1/1/1")
    for _ in range(150):
        size = int(rng.choice([1, 3, 40, 400, 900, 5000]))
        start = int(rng.integers(0, len(BYTES) - size))
        action = rng.integers(0, 12)
        if action < 8:
            assert file.read(start, size) == content[start : start + size].tobytes()
        elif action < 9:
            wanted = values[16:32, 12:24, 20:40].tobytes()
            start = int(rng.integers(0, CHUNK_BYTES))
            assert chunk.read(start, size) == wanted[start : start + size]
        elif action < 11:
            data = rng.bytes(min(size, 400))
            assert file.write(start, data) == len(data)
            content[start : start + len(data)] = np.frombuffer(data, "u1")
        else:
            file.fsync()
            m.array().drop()
    file.close()
    assert m.read("array.bin") == values.tobytes()
