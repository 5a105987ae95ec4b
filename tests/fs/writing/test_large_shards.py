"""Shards that are stored larger than memory allows are rewritten piece by piece."""

import numpy as np
import pytest

from tests.fs.documents import CRC32C, LITTLE, array_document, sharding
from tests.fs.write_store import WriteStore
from zarrfs.errors import ChunkError, StoreError

pytestmark = pytest.mark.timeout(60)

MEMORY = 16 << 20
LENGTH = 6 << 20
INNER = 64 << 10
KEY = "c/0"

CODECS = {
    "end": [sharding((INNER,))],
    "start": [sharding((INNER,), index_location="start")],
    "nested": [sharding((16 * INNER,), codecs=[sharding((INNER,))])],
    "nested and checked": [sharding((8 * INNER,), codecs=[sharding((INNER,)), CRC32C])],
}


class Watching(WriteStore):
    """Notes how large the parts are that it is given, and what is read at once."""

    largest_part = largest_read = 0

    def put(self, key, parts, *, expected):
        def watched():
            for part in parts:
                self.largest_part = max(self.largest_part, memoryview(part).nbytes)
                yield part

        if key == KEY:
            assert sum(1 for _ in parts) == len(parts)
        return super().put(key, watched(), expected=expected)

    def get(self, key, *, limit):
        blob = super().get(key, limit=limit)
        self.largest_read = max(self.largest_read, len(blob.data) if blob else 0)
        return blob


@pytest.fixture(params=CODECS, ids=CODECS)
def document(request):
    return array_document((LENGTH,), (LENGTH,), codecs=CODECS[request.param])


@pytest.fixture
def data():
    return np.random.default_rng(3).integers(-999, 999, LENGTH, "<i2")


@pytest.fixture
def store(opened, document, data):
    """One shard of 12 MiB, of which nothing compresses."""
    store = Watching({"zarr.json": document})
    mount = opened(store, memory=256 << 20)
    mount.write("array.bin", 0, data.tobytes())
    assert len(store.objects[KEY]) > LENGTH * 2
    store.requests.clear()
    store.largest_part = store.largest_read = 0
    return store


def test_parts_of_a_shard_larger_than_the_memory_for_it_can_be_changed(opened, store, data):
    mount = opened(store, memory=MEMORY)
    file = mount.edit("array.bin")
    for at in (0, 3 * INNER + 5, LENGTH - 7):
        data[at : at + 7] = at % 1000
        file.write(2 * at, data[at : at + 7].tobytes())
    data[10 * INNER : 12 * INNER] = 5
    file.write(2 * 10 * INNER, data[10 * INNER : 12 * INNER].tobytes())
    file.fsync()
    assert store.counted("put") == {KEY: 1}
    assert max(store.largest_part, store.largest_read) <= 4 << 20
    assert opened(WriteStore(store.objects)).read("array.bin") == data.tobytes()


def test_an_odd_byte_of_it_can_be_changed(opened, store, data):
    mount = opened(store, memory=MEMORY)
    raw = bytearray(data.tobytes())
    raw[2 * INNER + 1] ^= 0xFF
    mount.write("array.bin", 2 * INNER + 1, raw[2 * INNER + 1 :][:1])
    assert opened(WriteStore(store.objects)).read("array.bin") == raw


def test_chunks_of_it_can_become_fill_value_and_be_gone(opened, store, data):
    mount = opened(store, memory=MEMORY)
    data[INNER : 3 * INNER] = 7
    size = len(store.objects[KEY])
    mount.write("array.bin", 2 * INNER, data[INNER : 3 * INNER].tobytes())
    assert len(store.objects[KEY]) <= size - 2 * 2 * INNER
    assert opened(WriteStore(store.objects)).read("array.bin") == data.tobytes()


def test_what_others_store_while_it_is_copied_survives(opened, store, data):
    """Whatever they replace: the new shard is never made of two states."""
    elsewhere = WriteStore(store.objects)
    opened(elsewhere, memory=256 << 20).write("array.bin", 0, b"\1\1")
    theirs = elsewhere.objects[KEY]
    mount = opened(store, memory=MEMORY)
    done = []

    def interfere(request):
        if request.operation == "put" and not done:
            done.append(request)
            store.replace(KEY, theirs)

    store.before = interfere
    mount.write("array.bin", 2 * 20 * INNER, b"\2\2")
    data[0], data[20 * INNER] = 0x0101, 0x0202
    assert store.counted("put") == {KEY: 2}
    assert opened(WriteStore(store.objects)).read("array.bin") == data.tobytes()


def test_no_stored_byte_is_lost_when_it_is_damaged(opened, data):
    """A chunk that does not decode is copied as it is; one that is to be changed is refused."""
    document = array_document(
        (LENGTH,), (LENGTH,), codecs=[sharding((INNER,), codecs=[LITTLE, CRC32C])]
    )
    store = Watching({"zarr.json": document})
    opened(store, memory=256 << 20).write("array.bin", 0, data.tobytes())
    damaged = bytearray(store.objects[KEY])
    damaged[100] ^= 1
    store.replace(KEY, bytes(damaged))
    mount = opened(store, memory=MEMORY)
    mount.write("array.bin", 2 * 5 * INNER, b"\3\3")
    assert store.objects[KEY][:200] == damaged[:200]
    with pytest.raises(ChunkError):
        mount.write("array.bin", 0, b"\4\4")
    assert store.objects[KEY][:200] == damaged[:200]


def test_a_service_that_takes_whole_objects_names_the_option(opened, data):
    document = array_document((LENGTH,), (LENGTH,), codecs=CODECS["end"])
    store = Watching({"zarr.json": document}, cheap=False)
    opened(store, memory=256 << 20).write("array.bin", 0, data.tobytes())
    mount = opened(store, memory=MEMORY)
    with pytest.raises(StoreError, match="-o memory="):
        mount.write("array.bin", 0, b"\3\3")
    assert mount.write_back.dirty_bytes
