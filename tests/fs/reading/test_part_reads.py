"""Small reads that take parts of chunks from the store, and when they do not."""

import functools
import json

import numpy as np
import pytest

from tests.fs.documents import CRC32C, LITTLE, array_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from tests.fs.write_store import WriteStore
from tests.soak import EXHAUSTIVE, TIMES
from zarrfs.cache.read import part_reads
from zarrfs.errors import ChunkError
from zarrfs.format.metadata.v3 import parse_node

SHAPE, CHUNKS = (60, 300, 500), (10, 200, 500)
LITTLE_MEMORY = 16 << 20  # less than the array has, more than one chunk takes
ITEM = 2
CHUNK_BYTES = ITEM * 10 * 200 * 500
ROW = ITEM * 500
VALUES = (np.arange(60 * 300 * 500) // 7 % 30_011).astype("<i2").reshape(SHAPE)
BYTES = VALUES.tobytes()
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TURNED = {"name": "transpose", "configuration": {"order": [2, 1, 0]}}


def blosc(blocksize=65_536):
    settings = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "typesize": ITEM}
    return {"name": "blosc", "configuration": {**settings, "blocksize": blocksize}}


DIVIDED = {
    "as they are": [LITTLE],
    "big": [BIG],
    "blosc": [LITTLE, blosc()],
    "blosc, big": [BIG, blosc(65_000)],
}
WHOLE = {
    "checksum": [LITTLE, CRC32C],
    "checksum of blosc": [LITTLE, blosc(), CRC32C],
    "transposed": [TURNED, LITTLE],
    "one block": [LITTLE, blosc(CHUNK_BYTES)],
}


def objects(codecs):
    """An array; its objects are made once."""
    return dict(_objects(json.dumps(codecs)))


@functools.cache
def _objects(given):
    codecs = json.loads(given)
    plain = array_document(SHAPE, CHUNKS, codecs=codecs)
    codec = parse_node(json.loads(plain), "zarr.json").layout.chunk_codec(CHUNKS)
    found = {"zarr.json": plain}
    for i, j in np.ndindex(6, 2):
        part = VALUES[10 * i : 10 * i + 10, 200 * j : 200 * j + 200]
        chunk = np.zeros(CHUNKS, "<i2")
        chunk[tuple(map(slice, part.shape))] = part
        found[f"c/{i}/{j}/0"] = bytes(codec.encode(chunk))
    return found


def sharded(codecs):
    """The same chunks in shards of two."""
    plain = objects(codecs)
    shape = (10, 400, 500)
    document = array_document(SHAPE, shape, codecs=[sharding(CHUNKS, codecs=codecs)])
    shards = {f"c/{i}/0/0": shard([plain[f"c/{i}/0/0"], plain[f"c/{i}/1/0"]]) for i in range(6)}
    return {"zarr.json": document, **shards}


LAYOUTS = [f"{name}{where}" for name in DIVIDED for where in ("", ", in shards")]


@pytest.fixture(params=LAYOUTS)
def divided(request):
    name = request.param
    make = sharded if "in shards" in name else objects
    return make(DIVIDED[name.removesuffix(", in shards")])


def at(z, y, x=0):
    """Where an element lies in the file."""
    return ITEM * ((z * 300 + y) * 500 + x)


def cache(m):
    return m.stats()["cache"]


def read(file, start, size):
    assert file.read(start, size) == BYTES[start : start + size]


def test_a_small_read_decodes_only_a_part(mount, divided):
    m = mount(MemoryStore(divided), memory=LITTLE_MEMORY)
    file = m.open("array.bin")
    read(file, at(3, 17, 5) + 1, 3001)
    found = cache(m)
    assert (found["parts"], found["loads"], found["misses"]) == (1, 0, 1)
    assert 3001 <= found["decoded_bytes"] <= 3001 + 2 * 65_536


def test_a_small_read_reads_only_a_part(mount, tmp_path):
    files = objects([LITTLE])
    for key, data in files.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    m = mount(tmp_path)
    read(m.open("array.bin"), at(3, 17), 4096)
    assert cache(m)["parts"] == 1
    assert m.stats()["store"]["read_bytes"] < 3 * 4096


def test_memory_for_a_part_and_the_index_of_its_shard_is_reserved(opened, monkeypatch):
    m = opened(WriteStore(sharded(DIVIDED["blosc"])), memory=LITTLE_MEMORY)
    budget, shard_cost = m.tree.cache.budget, m.array().array.shard_cost
    reserved = []
    take = budget.try_reserve
    monkeypatch.setattr(budget, "try_reserve", lambda *how: reserved.append(how[0]) or take(*how))
    used = budget.used
    read(m.open("array.bin"), at(3, 17), 3000)
    assert cache(m)["parts"] == 1
    assert shard_cost > 0
    assert reserved == [3 * CHUNK_BYTES // 2 + shard_cost]
    assert budget.used == used


def test_where_no_memory_is_free_the_chunk_is_loaded(mount, monkeypatch):
    m = mount(MemoryStore(objects(DIVIDED["as they are"])), memory=LITTLE_MEMORY)
    budget = m.tree.cache.budget
    take = budget.try_reserve
    # That is what a load reserves.
    monkeypatch.setattr(
        budget, "try_reserve", lambda size, *how: size >= CHUNK_BYTES and take(size, *how)
    )
    file = m.open("array.bin")
    for z in range(0, 60, 10):
        for y in (17, 217):
            read(file, at(z, y), 400)
    assert (cache(m)["parts"], cache(m)["misses"]) == (0, 12)
    monkeypatch.undo()
    # That was no failure to read a part. The first chunk has given way to others.
    read(file, at(5, 40), 400)
    assert cache(m)["parts"] == 1


def test_a_read_across_chunks_decodes_a_part_of_each(mount, divided):
    m = mount(MemoryStore(divided), memory=LITTLE_MEMORY)
    read(m.open("array.bin"), at(3, 199), 2 * ROW)
    assert (cache(m)["parts"], cache(m)["loads"]) == (2, 0)


@pytest.mark.parametrize("name", WHOLE)
def test_chunks_that_cannot_be_divided_are_loaded(mount, name):
    m = mount(MemoryStore(objects(WHOLE[name])), memory=LITTLE_MEMORY)
    read(m.open("array.bin"), at(3, 17), 3000)
    assert (cache(m)["parts"], cache(m)["loads"]) == (0, 1)


def test_chunks_are_loaded_once_their_parts_have_cost_as_much(mount, divided):
    m = mount(MemoryStore(divided), memory=LITTLE_MEMORY)
    file = m.open("array.bin")
    for y in range(0, 200, 5):
        read(file, at(2, y, 7), 400)
        if cache(m)["loads"]:
            break
    found = cache(m)
    assert found["loads"] == 1
    assert 4 < found["parts"] <= CHUNK_BYTES // part_reads._OVERHEAD
    # What decoding has cost.
    assert found["decoded_bytes"] <= 2 * CHUNK_BYTES
    read(file, at(9, 100), 400)
    assert cache(m)["parts"] == found["parts"]


def test_a_chunk_is_loaded_for_a_program_that_reads_on(mount, divided):
    m = mount(MemoryStore(divided), memory=LITTLE_MEMORY)
    file = m.open("array.bin")
    for place in range(0, 3 * 4096, 4096):
        read(file, at(3, 20) + place, 4096)
    assert (cache(m)["parts"], cache(m)["loads"]) == (1, 1)


@pytest.mark.parametrize(
    ("near", "size"), [(True, 20 << 10), (False, 3000)], ids=["large read", "distant store"]
)
def test_chunks_are_loaded_at_once_for_a(mount, divided, near, size):
    m = mount(MemoryStore(divided, cheap=near), memory=LITTLE_MEMORY)
    read(m.open("array.bin"), at(3, 17), size)
    assert (cache(m)["parts"], cache(m)["loads"]) == (0, 1)


@pytest.mark.parametrize("name", DIVIDED)
def test_with_memory_for_all_of_the_array_nothing_is_decoded_in_vain(mount, name):
    m = mount(MemoryStore(objects(DIVIDED[name])), memory=64 << 20)
    read(m.open("array.bin"), at(3, 17), 3000)
    # Only chunks that need no decoding are read in parts.
    assert cache(m)["parts"] == (0 if "blosc" in name else 1)


def test_chunks_with_too_large_blocks_are_soon_loaded_at_once(mount, monkeypatch):
    monkeypatch.setattr(part_reads, "_MOST_FAILURES", 2)
    store = MemoryStore(objects(WHOLE["one block"]))
    m = mount(store, memory=LITTLE_MEMORY)
    file = m.open("array.bin")
    asked = []
    ranges = store.get_ranges
    store.get_ranges = lambda key, wanted: asked.append(key) or ranges(key, wanted)
    for z, y in np.ndindex(3, 2):
        read(file, at(10 * z + 1, 200 * y), 400)
    assert cache(m)["loads"] == 6
    assert len(asked) == 3


def test_parts_of_missing_chunks_are_fill_value(mount, divided):
    del divided[next(key for key in divided if key.startswith("c/1/"))]
    m = mount(MemoryStore(divided), memory=LITTLE_MEMORY)
    assert m.open("array.bin").read(at(13, 17), 3000) == np.full(1500, 7, "<i2").tobytes()


@pytest.mark.parametrize("codecs", [*DIVIDED])
@pytest.mark.parametrize("length", [0, 10, -1])
def test_parts_of_damaged_chunks_are_errors_of_the_chunk(mount, codecs, length):
    files = objects(DIVIDED[codecs])
    key = "c/0/0/0"
    files[key] = files[key][:length]
    m = mount(MemoryStore(files), memory=LITTLE_MEMORY)
    file = m.open("array.bin")
    with pytest.raises(ChunkError, match=key):
        file.read(at(3, 17), 400)
    read(file, at(3, 217), 400)


def test_parts_of_replaced_chunks_are_new(mount, divided):
    store = MemoryStore(divided)
    m = mount(store, memory=LITTLE_MEMORY)
    file = m.open("array.bin")
    read(file, at(3, 17), 400)
    for key in [key for key in divided if key.startswith("c/0/")]:
        store.put(key, divided[key.replace("c/0/", "c/1/")])
    start = at(13, 17)
    assert file.read(at(3, 17), 400) == BYTES[start : start + 400]


@pytest.mark.parametrize(("divided", "memory"), [
    *((name, LITTLE_MEMORY) for name in LAYOUTS),
    *((name, 64 << 20) for name in (LAYOUTS if EXHAUSTIVE else LAYOUTS[::5])),
], indirect=["divided"])  # fmt: skip
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(TIMES))
def test_small_reads_and_writes_of_any_place(opened, divided, seed, memory):
    m = opened(WriteStore(divided), memory=memory)
    rng = np.random.default_rng(seed)
    content = np.frombuffer(bytearray(BYTES), "u1")
    file = m.edit("array.bin")
    for _ in range(60):
        size = int(rng.choice([1, 3, 400, 4096, 9000]))
        start = int(rng.integers(0, len(BYTES) - size))
        action = rng.integers(0, 12)
        if action < 9:
            assert file.read(start, size) == content[start : start + size].tobytes()
        elif action < 10:
            data = rng.bytes(size)
            assert file.write(start, data) == len(data)
            content[start : start + size] = np.frombuffer(data, "u1")
        elif action < 11:
            file.fsync()
        else:
            m.array().drop()
    file.close()
    assert cache(m)["parts"] or memory > LITTLE_MEMORY
    assert m.read("array.bin") == content.tobytes()
