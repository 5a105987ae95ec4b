"""Data that are not what they should be: an error for what is asked, and for nothing else."""

import gzip
import json
import struct
import tracemalloc
import zlib
from typing import ClassVar

import numcodecs
import numpy as np
import pytest

from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, group_document, sharding
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard, with_checksum
from tests.soak import EXHAUSTIVE
from zarrfs.errors import BudgetExceeded, ChunkError

pytestmark = pytest.mark.timeout(120)

SIDE = 32
CHUNKS = 4
NUMBERS = np.random.default_rng(1).integers(0, 50, CHUNKS * SIDE).astype("<i2")


def plain(i):
    return NUMBERS[i * SIDE : (i + 1) * SIDE].tobytes()


def zstd_checked(data):
    return numcodecs.Zstd(1, checksum=True).encode(data)


def blosc(data):
    return numcodecs.Blosc("lz4", shuffle=1).encode(np.frombuffer(data, "<i2"))


BLOSC = {
    "name": "blosc",
    "configuration": {
        "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0
    },
}  # fmt: skip

# Codecs, how a chunk is encoded, and whether any flipped bit can be told.
CODECS = {
    "raw": ([LITTLE], lambda data: data, False),
    "crc32c": ([LITTLE, CRC32C], with_checksum, True),
    "gzip": ([LITTLE, GZIP], lambda data: gzip.compress(data, 6, mtime=0), True),
    "zstd": ([LITTLE, ZSTD], zstd_checked, True),
    "blosc": ([LITTLE, BLOSC], blosc, False),
    "blosc-crc32c": ([LITTLE, BLOSC, CRC32C], lambda data: with_checksum(blosc(data)), True),
}


@pytest.fixture(params=CODECS)
def coded(request):
    """Store, key of one chunk's object, and whether any flipped bit can be told."""
    codecs, encode, checked = CODECS[request.param]
    document = array_document((CHUNKS * SIDE,), (SIDE,), codecs=codecs)
    objects = {f"c/{i}": encode(plain(i)) for i in range(CHUNKS)}
    return MemoryStore({"zarr.json": document, **objects}), request.param, checked


@pytest.fixture(params=["end", "start"])
def sharded(request):
    inner = [with_checksum(plain(i)) for i in range(CHUNKS)]
    codecs = [sharding((SIDE,), codecs=[LITTLE, CRC32C], index_location=request.param)]
    document = array_document((CHUNKS * SIDE,), (CHUNKS * SIDE,), codecs=codecs)
    return MemoryStore({"zarr.json": document, "c/0": shard(inner, request.param)})


def positions(data):
    """Of a shard: some bytes of its chunks, and every other one of its index."""
    index = CHUNKS * 16 + 4
    edges = (*range(index), *range(len(data) - index, len(data)))
    return sorted({*range(0, len(data), 11), *edges})[:: 1 if EXHAUSTIVE else 2]


def outcome(mounted, i):
    """The bytes of a chunk, or the error that came in their place."""
    try:
        return mounted.read(f"chunks/{i}")
    except ChunkError as error:
        return error


class TestFlippedBits:
    def test_of_a_chunk(self, mount, coded):
        store, name, checked = coded
        m = mount(store, recheck=0)
        original = store.objects["c/1"]
        silent = 0
        for position in range(len(original)):
            bad = bytearray(original)
            bad[position] ^= 1 << position % 8
            store.put("c/1", bytes(bad))
            found = outcome(m, 1)
            if isinstance(found, ChunkError):
                assert found.key == "c/1"
            elif checked:
                # Some header bytes do not matter (gzip: time, system; zstd: none here).
                assert found == plain(1), f"{name}: byte {position}"
                silent += 1
            else:
                assert len(found) == len(plain(1))
            assert m.read("chunks/0") == plain(0)
        assert silent <= 12
        if checked:
            assert len(m.errors()) > 0
        store.put("c/1", original)
        assert m.read("array.bin") == NUMBERS.tobytes()

    @pytest.mark.soak
    def test_of_a_shard(self, mount, sharded):
        m = mount(sharded, recheck=0)
        original = sharded.objects["c/0"]
        for position in positions(original):
            bad = bytearray(original)
            bad[position] ^= 1 << position % 8
            sharded.put("c/0", bytes(bad))
            found = [outcome(m, i) for i in range(CHUNKS)]
            failed = [i for i, each in enumerate(found) if isinstance(each, ChunkError)]
            assert len(failed) in (1, CHUNKS), position
            for i in set(range(CHUNKS)) - set(failed):
                assert found[i] == plain(i)
        sharded.put("c/0", original)
        assert m.read("array.bin") == NUMBERS.tobytes()


class TestSizes:
    CUT = (
        lambda data: b"",
        lambda data: data[:1],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b"\1",
        lambda data: data + b"junk" * 10,
        lambda data: data[1:],
    )

    def test_cut_short_or_followed_by_something(self, mount, coded):
        store, _, _ = coded
        original = store.objects["c/1"]
        for number, change in enumerate(self.CUT):
            store.put("c/1", change(original))
            m = mount(store)
            assert isinstance(outcome(m, 1), ChunkError), number
            for i in (0, 2, 3):
                assert outcome(m, i) == plain(i)
            with pytest.raises(ChunkError) as caught:
                m.read("array.bin")
            assert caught.value.key == "c/1"
            ((key, reason),) = set(m.errors())
            assert key == "c/1"
            assert reason
            assert m.stats()["errors"]["count"] >= 2

    def test_followed_by_zeros(self, mount, coded):
        """Those behind gzip are padding, as its own program and Python have it."""
        store, name, _ = coded
        store.put("c/1", store.objects["c/1"] + bytes(7))
        found = outcome(mount(store), 1)
        assert found == plain(1) if name == "gzip" else isinstance(found, ChunkError)

    def test_decodes_to_another_length(self, mount, coded):
        store, name, _ = coded
        for elements in (0, 1, SIDE - 1, SIDE + 1, 2 * SIDE, 100_000):
            store.put("c/1", CODECS[name][1](np.zeros(elements, "<i2").tobytes()))
            m = mount(store)
            assert isinstance(outcome(m, 1), ChunkError), elements
            assert outcome(m, 2) == plain(2), elements

    def test_an_object_far_too_large_is_not_read(self, mount, coded):
        store, _, _ = coded
        store.put("c/1", bytes(80 << 20))
        m = mount(store)
        found = outcome(m, 1)
        assert isinstance(found, ChunkError)
        assert "allowed" in found.reason
        assert outcome(m, 2) == plain(2)

    @pytest.mark.soak
    def test_every_length_of_a_shard(self, mount, sharded):
        original = sharded.objects["c/0"]
        m = mount(sharded, recheck=0)
        for length in positions(original):
            sharded.put("c/0", original[:length])
            for i in range(CHUNKS):
                found = outcome(m, i)
                # With its index at the start, what is left of a shard can be read.
                assert isinstance(found, ChunkError) or found == plain(i)
            assert isinstance(found, ChunkError)


def zstd_header_claiming(size):
    """A frame that tells a content size in eight bytes, and has one empty last block."""
    return struct.pack("<IBQ", 0xFD2FB528, 0b11100000, size) + b"\1\0\0"


def blosc_header_claiming(size, length):
    return struct.pack("<BBBBIII", 2, 1, 0b1, 2, size, size, length).ljust(length, b"\0")


class TestBombs:
    """What claims or decodes to far more than it may. Native memory: see `test_bomb_memory`."""

    MEMORY = 16 << 20

    def run(self, mount, codecs, data, traced=12 << 20):
        document = array_document((CHUNKS * SIDE,), (SIDE,), codecs=codecs)
        store = MemoryStore({"zarr.json": document, "c/1": data})
        m = mount(store, memory=self.MEMORY)
        tracemalloc.start()
        try:
            found = outcome(m, 1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert isinstance(found, ChunkError), found
        assert peak < traced
        assert outcome(m, 2) == np.full(SIDE, 7, "<i2").tobytes()
        return found

    def test_gzip_whose_trailer_lies(self, mount):
        bomb = gzip.compress(bytes(60 << 20), 9)
        short = bytes(2 * SIDE)
        trailer = struct.pack("<II", zlib.crc32(short), len(short))
        self.run(mount, [LITTLE, GZIP], bomb[:-8] + trailer)

    def test_zstd_that_claims(self, mount):
        for size in (0, 2 * SIDE, 2**31, 2**40, 2**63, 2**64 - 1):
            self.run(mount, [LITTLE, ZSTD], zstd_header_claiming(size))

    def test_blosc_that_claims(self, mount):
        for size in (2**31 - 1, 2**32 - 1, 2 * SIDE + 1):
            self.run(mount, [LITTLE, BLOSC], blosc_header_claiming(size, 60))

    @pytest.mark.parametrize("header", [
        bytes(16), b"\xff" * 16, b"\2\1\0\2" + b"\0" * 8 + b"\x10\0\0\0",
        blosc_header_claiming(2 * SIDE, 16), blosc_header_claiming(2 * SIDE, 20),
    ])  # fmt: skip
    def test_blosc_headers_of_nothing(self, mount, header):
        self.run(mount, [LITTLE, BLOSC], header)


class TestShardBombs:
    def mounted(self, mount, codecs, data, chunk=SIDE, count=CHUNKS, **config):
        document = array_document((count * chunk,), (count * chunk,), codecs=codecs)
        return mount(MemoryStore({"zarr.json": document, "c/0": data}), **config)

    def test_entries_that_claim_the_whole_shard_for_each_chunk(self, mount):
        """Read together they are many times the shard's size."""
        inner = [with_checksum(plain(i)) for i in range(CHUNKS)]
        size = sum(map(len, inner)) + 16 * CHUNKS + 4
        m = self.mounted(
            mount, [sharding((SIDE,), codecs=[LITTLE, CRC32C])],
            shard(inner, entries=dict.fromkeys(range(CHUNKS), (0, size))),
        )  # fmt: skip
        assert all(isinstance(outcome(m, i), ChunkError) for i in range(CHUNKS))

    def test_an_index_larger_than_the_memory(self, mount):
        with pytest.raises(BudgetExceeded, match="index"):
            self.mounted(mount, [sharding((1,))], b"", chunk=1, count=1 << 20, memory=16 << 20)


class TestElements:
    def test_a_bool_that_is_neither(self, mount):
        document = array_document((8,), (4,), data_type="bool", fill_value=False)
        m = mount(MemoryStore({"zarr.json": document, "c/0": b"\0\1\2\1", "c/1": b"\0\1\1\0"}))
        assert isinstance(outcome(m, 0), ChunkError)
        assert outcome(m, 1) == b"\0\1\1\0"

    def test_an_object_where_a_directory_is(self, mount, tmp_path):
        (tmp_path / "zarr.json").write_bytes(array_document((8,), (4,)))
        (tmp_path / "c/0").mkdir(parents=True)
        (tmp_path / "c/1").write_bytes(np.arange(4, dtype="<i2").tobytes())
        m = mount(tmp_path)
        assert outcome(m, 0) == np.full(4, 7, "<i2").tobytes()
        assert outcome(m, 1) == np.arange(4, dtype="<i2").tobytes()


class TestDocuments:
    """A metadata document with any one byte changed or cut off never hurts the others."""

    DOCUMENT = array_document((CHUNKS * SIDE,), (SIDE,), codecs=[LITTLE, GZIP, CRC32C])

    def names(self, mount, documents):
        """Names below each array of a group with these documents, and a good one."""
        bad = {f"bad{i:04}": document for i, document in enumerate(documents)}
        objects = {f"{name}/zarr.json": document for name, document in bad.items()}
        group = {"zarr.json": group_document(), "good/zarr.json": self.DOCUMENT}
        m = mount(MemoryStore(group | objects), memory=1 << 20)
        assert m.ls() == ["zarr.json", ".zarrfs", *bad, "good"]
        found = []
        for name, document in bad.items():
            found.append(m.ls(name))
            assert "zarr.json" in found[-1]
            assert m.read(f"{name}/zarr.json") == document
            assert m.stat("good/array.bin").size == 2 * CHUNKS * SIDE
            m.xattrs(name)
        return found

    def check_noted(self, mount, documents):
        for document, names in zip(documents, self.names(mount, documents), strict=True):
            assert names == ["zarr.json", "zarrfs-note.txt"], document[:200]

    def test_any_byte_flipped(self, mount):
        damaged = []
        for position in range(0, len(self.DOCUMENT), 5):
            bad = bytearray(self.DOCUMENT)
            bad[position] ^= 1 << position % 7
            damaged.append(bytes(bad))
        for names in self.names(mount, damaged):
            assert ("zarrfs-note.txt" in names) != ("array.bin" in names)

    def test_any_length(self, mount):
        lengths = range(0, len(self.DOCUMENT), 7)
        self.check_noted(mount, [self.DOCUMENT[:length] for length in lengths])

    ABSURD: ClassVar = [
        ("shape", [2**63]), ("shape", [2**31] * 4), ("shape", [10**30]), ("shape", [-1]),
        ("shape", [1.5]), ("shape", "x"), ("shape", None), ("shape", [[4]]), ("shape", [True]),
        ("shape", [10] * 10_000),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [0]}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [-2]}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [10**30]}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [2**62]}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": []}}),
        ("chunk_grid", {"name": "regular"}), ("chunk_grid", None),
        ("data_type", "r9"), ("data_type", "r0"), ("data_type", "r99999999999999999999"),
        ("data_type", "r" + "9" * 5000), ("data_type", {}), ("data_type", None),
        ("fill_value", 10**1000), ("fill_value", {}),
        ("fill_value", "0x" + "f" * 100),
        ("codecs", []), ("codecs", [LITTLE] * 2), ("codecs", [GZIP]), ("codecs", None),
        ("codecs", [sharding((3,))]), ("codecs", [sharding((0,))]),
        ("codecs", [sharding((SIDE, 1))]),
        ("codecs", [sharding((8,), index_codecs=[LITTLE, GZIP])]),
        ("codecs", [{"name": "transpose", "configuration": {"order": [1]}}, LITTLE]),
        ("codecs", [{"name": "transpose", "configuration": {"order": [10**30]}}, LITTLE]),
        ("chunk_key_encoding", {"name": "nobody-knows"}), ("chunk_key_encoding", None),
        ("node_type", "bush"), ("zarr_format", 4), ("zarr_format", "3"), ("zarr_format", None),
        ("dimension_names", [1]), ("storage_transformers", [{"name": "x"}]),
    ]  # fmt: skip

    def test_absurd_members(self, mount):
        document = json.loads(self.DOCUMENT)
        absurd = [document | {member: value} for member, value in self.ABSURD]
        self.check_noted(mount, [json.dumps(each).encode() for each in absurd])

    def test_no_documents_at_all(self, mount):
        self.check_noted(mount, [
            b"[" * 100_000, b'{"a":' * 100_000, b"1" * 100_000, b'"' * 7, b"\0" * 100, b"NaN",
            b"\xef\xbb\xbf{}", b'{"zarr_format": 3, "zarr_format": 3}', b"true", b"{}",
        ])  # fmt: skip

    def test_nested_sharding_without_end(self, mount):
        codec = sharding((1,))
        for _ in range(200):
            codec = sharding((1,), codecs=[codec])
        self.names(mount, [array_document((4,), (1,), codecs=[codec])])
