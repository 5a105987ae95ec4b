"""Chunks that take most of the memory: those that an encoder makes, and longer ones."""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import pytest

from tests.fs.documents import LITTLE, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.errors import BudgetExceeded, ChunkError

pytestmark = pytest.mark.timeout(60)

SIDE = 724
NBYTES = 2 * SIDE * SIDE
GZIP = {"name": "gzip", "configuration": {"level": 1}}
TURNED = {"name": "transpose", "configuration": {"order": [1, 0]}}
CHUNKS = np.random.default_rng(0).integers(-(1 << 15), 1 << 15, (3, SIDE, SIDE), "<i2")
# Room for what gzip makes of a chunk that it cannot compress, not for twice the chunk.
LITTLE_MEMORY = int(4.3 * NBYTES)


def flushed_often(data: bytes) -> bytes:
    """Legal, and longer than any encoder would make it."""
    stream = zlib.compressobj(0, zlib.DEFLATED, 31)
    parts = []
    for i in range(0, len(data), 12):
        parts += [stream.compress(data[i : i + 12]), stream.flush(zlib.Z_SYNC_FLUSH)]
    return b"".join([*parts, stream.flush()])


def encoded(*, longest: bool) -> list[bytes]:
    chunks = [gzip.compress(chunk.T.tobytes(), 1) for chunk in CHUNKS]
    if longest:
        chunks[1] = flushed_often(CHUNKS[1].T.tobytes())
    return chunks


def store(*, sharded: bool, longest: bool) -> MemoryStore:
    chunks = encoded(longest=longest)
    shape, codecs = (3 * SIDE, SIDE), [TURNED, LITTLE, GZIP]
    if not sharded:
        document = array_document(shape, (SIDE, SIDE), codecs=codecs)
        return MemoryStore(
            {"zarr.json": document} | {f"c/{i}/0": each for i, each in enumerate(chunks)}
        )
    document = array_document(shape, shape, codecs=[sharding((SIDE, SIDE), codecs=codecs)])
    return MemoryStore({"zarr.json": document, "c/0/0": shard(chunks)})


@pytest.mark.parametrize("sharded", [False, True])
class TestLittleMemory:
    def test_chunks_that_do_not_compress(self, mount, sharded):
        m = mount(store(sharded=sharded, longest=False), memory=LITTLE_MEMORY, loaders=1)
        assert m.read("array.bin") == CHUNKS.tobytes()
        assert m.stats()["memory"]["highest"] <= LITTLE_MEMORY

    def test_a_stored_chunk_that_is_too_long(self, mount, sharded):
        source = store(sharded=sharded, longest=True)
        m = mount(source, memory=LITTLE_MEMORY, loaders=1)
        with pytest.raises(ChunkError, match="allowed"):
            m.read("chunks/1/0")
        assert m.read("chunks/0/0") == CHUNKS[0].tobytes()
        assert m.read("chunks/2/0") == CHUNKS[2].tobytes()
        assert m.stats()["memory"]["highest"] <= LITTLE_MEMORY
        assert mount(source, memory=64 << 20).read("array.bin") == CHUNKS.tobytes()

    def test_no_room_for_what_an_encoder_makes(self, mount, sharded):
        with pytest.raises(BudgetExceeded, match="memory="):
            mount(store(sharded=sharded, longest=False), memory=int(3.5 * NBYTES), loaders=1)


def test_the_reason_names_the_remedy(mount):
    m = mount(store(sharded=False, longest=True), memory=LITTLE_MEMORY, loaders=1)
    with pytest.raises(ChunkError, match="raise it with -o memory="):
        m.read("chunks/1/0")
