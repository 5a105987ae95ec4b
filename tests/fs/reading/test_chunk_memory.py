"""Chunks that take most of the memory: those that an encoder makes, and longer ones."""

import base64
import gzip
import json
import zlib

import numcodecs
import numpy as np
import pytest

from tests.fs.documents import CRC32C, LITTLE, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard, with_checksum
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
        with pytest.raises(ChunkError, match=r"allowed with this memory budget: .* -o memory="):
            m.read("chunks/1/0")
        assert m.read("chunks/0/0") == CHUNKS[0].tobytes()
        assert m.read("chunks/2/0") == CHUNKS[2].tobytes()
        assert m.stats()["memory"]["highest"] <= LITTLE_MEMORY
        assert mount(source, memory=64 << 20).read("array.bin") == CHUNKS.tobytes()

    def test_no_room_for_what_an_encoder_makes(self, mount, sharded):
        with pytest.raises(BudgetExceeded, match="memory="):
            mount(store(sharded=sharded, longest=False), memory=int(3.5 * NBYTES), loaders=1)


BLOSC = {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "typesize": 2, "blocksize": 0}
ZSTD = {"level": 1, "checksum": True}


@pytest.mark.parametrize(("codecs", "encode"), [
    ([LITTLE, GZIP], gzip.compress),
    ([LITTLE, {"name": "blosc", "configuration": BLOSC}], numcodecs.Blosc("lz4", 1, 0).encode),
    ([LITTLE, {"name": "zstd", "configuration": ZSTD}, CRC32C],
     lambda data: with_checksum(bytes(numcodecs.Zstd(1, checksum=True).encode(data)))),
], ids=["gzip", "blosc", "zstd"])  # fmt: skip
def test_whatever_the_memory_is_what_was_encoded_is_read(mount, codecs, encode):
    document = array_document((3 * SIDE, SIDE), (SIDE, SIDE), codecs=codecs)
    chunks = {f"c/{i}/0": bytes(encode(chunk.tobytes())) for i, chunk in enumerate(CHUNKS)}
    source = MemoryStore({"zarr.json": document} | chunks)
    check_every_memory(mount, source)


def test_a_filter_that_enlarges_each_chunk(mount):
    document = {
        "zarr_format": 2, "shape": [3 * SIDE, SIDE], "chunks": [SIDE, SIDE], "dtype": "<i2",
        "filters": [{"id": "base64"}], "compressor": {"id": "gzip", "level": 0},
        "fill_value": 0, "order": "C",
    }  # fmt: skip
    chunks = {
        f"{i}.0": gzip.compress(base64.b64encode(chunk.tobytes()), 0)
        for i, chunk in enumerate(CHUNKS)
    }
    check_every_memory(mount, MemoryStore({".zarray": json.dumps(document).encode()} | chunks))


def check_every_memory(mount, source):
    """The array is refused with little memory, and read with more."""
    outcomes = []
    for tenths in range(20, 80, 4):
        memory = tenths * NBYTES // 10
        try:
            m = mount(source, memory=memory, loaders=1)
        except BudgetExceeded:
            outcomes.append(False)
            continue
        outcomes.append(True)
        assert m.read("array.bin") == CHUNKS.tobytes()
        assert m.stats()["memory"]["highest"] <= memory
    assert outcomes == sorted(outcomes)
    assert {True, False} == set(outcomes)


@pytest.mark.parametrize("sharded", [False, True])
def test_the_limit_follows_the_memory(mount, sharded):
    m = mount(store(sharded=sharded, longest=True), memory=64 << 20, loaders=1)
    (array,) = [cached.array for cached in m.tree._caches._all_arrays()]
    before = array.decoder.cost(array.layout.read.largest_chunk)
    m.loop.run(m.fs.set_memory, LITTLE_MEMORY)
    assert array.decoder.cost(array.layout.read.largest_chunk) < before
    assert m.read("chunks/0/0") == CHUNKS[0].tobytes()
    with pytest.raises(ChunkError, match="allowed"):
        m.read("chunks/1/0")
    m.loop.run(m.fs.set_memory, 64 << 20)
    assert array.decoder.cost(array.layout.read.largest_chunk) == before
    assert m.read("array.bin") == CHUNKS.tobytes()


def test_the_reason_names_the_remedy(mount):
    m = mount(store(sharded=False, longest=True), memory=LITTLE_MEMORY, loaders=1)
    with pytest.raises(ChunkError, match="raise it with -o memory="):
        m.read("chunks/1/0")


@pytest.mark.parametrize(("codecs", "copies"), [
    ([LITTLE, {"name": "blosc", "configuration": BLOSC}], 1),
    ([TURNED, LITTLE, GZIP, CRC32C], 1),
    ([TURNED, LITTLE, GZIP, {"name": "blosc", "configuration": BLOSC | {"typesize": 1}}], 4),
    ([TURNED, LITTLE, CRC32C], 0),
])  # fmt: skip
def test_copies_of_a_chunk_that_is_decoded_to_a_block(mount, codecs, copies):
    m = mount(MemoryStore({"zarr.json": array_document((SIDE, SIDE), (SIDE, SIDE), codecs=codecs)}))
    (array,) = [cached.array for cached in m.tree._caches._all_arrays()]
    shape = (SIDE, SIDE)
    beside = array.decoder.cost_in_block(shape) - array.decoder.longest(shape)
    assert copies * NBYTES <= beside <= copies * NBYTES + (128 << 10)
