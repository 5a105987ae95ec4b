"""Shards are read by range: what is asked of the store, and what never gets through."""

import gzip

import numpy as np
import pytest
import zarr

from tests.fs.arrays import open_array
from tests.fs.documents import CRC32C, GZIP, LITTLE, array_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import MISSING, shard, with_checksum
from zarrfs.array.shards import shard_reader
from zarrfs.errors import (
    BudgetExceeded,
    StoreAccessDenied,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
)

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True, params=[0, 32], ids=["as arrays", "one by one"])
def few(request, monkeypatch):
    """Inner chunks are looked up in both ways, however many they are."""
    monkeypatch.setattr(shard_reader, "_FEW", request.param)


SIDE = 4
INNER = 8


def data(value, dtype="<i2"):
    return np.full(SIDE, value, dtype).tobytes()


SIZE = len(data(0))
INDEX = 16 * INNER + 4
WHOLE = shard([data(i) for i in range(INNER)])


def make(stored, codecs=None, **options):
    """One shard of `INNER` chunks of `SIDE`; the calls of opening are forgotten."""
    length = INNER * SIDE
    document = array_document((length,), (length,), codecs=codecs or [sharding((SIDE,))])
    objects = {} if stored is None else {"c/0": stored}
    store = FaultStore(MemoryStore({"zarr.json": document, **objects}))
    array = open_array(store, **options)
    store.calls.clear()
    return array, store


def read(array, *numbers):
    """What each inner chunk is full of, or the reason why it cannot be had."""
    results = {r.index: r for r in array.read_chunks([(n,) for n in numbers])}
    assert len(results) == len(numbers)
    found = {}
    for (number,), result in results.items():
        if result.chunk is None:
            assert result.error.key == "c/0"
            found[number] = result.error.reason
        else:
            assert result.error is None
            assert result.chunk.shape == (SIDE,)
            assert len(set(result.chunk.tolist())) == 1
            found[number] = int(result.chunk[0])
    return found


def every(array):
    return read(array, *range(INNER))


class TestRequests:
    def test_the_index_once_then_only_what_is_asked(self):
        array, store = make(WHOLE)
        assert read(array, 3) == {3: 3}
        assert [call.ranges for call in store.calls] == [((-INDEX, INDEX),), ((3 * SIZE, SIZE),)]
        store.calls.clear()
        assert read(array, 6) == {6: 6}
        assert [call.ranges for call in store.calls] == [((6 * SIZE, SIZE),)]

    def test_an_index_at_the_start(self):
        inner = [data(i) for i in range(INNER)]
        array, store = make(shard(inner, "start"), [sharding((SIDE,), index_location="start")])
        assert read(array, 2) == {2: 2}
        assert [call.ranges for call in store.calls] == [
            ((0, INDEX),), ((INDEX + 2 * SIZE, SIZE),)
        ]  # fmt: skip

    def test_what_is_not_stored_is_not_asked_for(self):
        array, store = make(shard([data(0), None, data(2), *[None] * 5]))
        assert every(array) == {0: 0, 2: 2, **dict.fromkeys((1, 3, 4, 5, 6, 7), 7)}
        store.calls.clear()
        assert read(array, 1) == {1: 7}
        assert store.calls == []

    def test_an_index_that_does_not_fit_the_cache(self):
        with pytest.raises(BudgetExceeded, match="index"):
            make(WHOLE, index_memory=INDEX - 5)

    def test_indexes_give_way_to_others(self):
        """Room for the index of one of two shards."""
        document = array_document((2 * INNER * SIDE,), (INNER * SIDE,), codecs=[sharding((SIDE,))])
        store = FaultStore(MemoryStore({"zarr.json": document, "c/0": WHOLE, "c/1": WHOLE}))
        array = open_array(store, index_memory=INDEX)
        store.calls.clear()
        for number in (0, INNER, 0, INNER):
            (result,) = array.read_chunks([(number,)])
            assert result.chunk.tolist() == [0] * SIDE
        assert store.count("ranges") == 8


class TestChanges:
    def test_replaced_between_index_and_data(self):
        array, store = make(WHOLE)
        other = shard([None, *(data(10 + i) for i in range(1, INNER))])

        def replace(call):
            if call.ranges and call.ranges[0][0] >= 0 and not replaced:
                replaced.append(call)
                store.inner.put("c/0", other)

        replaced = []
        store.before = replace
        assert every(array) == {0: 7, **{i: 10 + i for i in range(1, INNER)}}
        assert replaced

    def test_deleted_between_index_and_data(self):
        array, store = make(WHOLE)

        def delete(call):
            if call.ranges[0][0] >= 0:
                store.inner.delete("c/0")

        store.before = delete
        assert every(array) == dict.fromkeys(range(INNER), 7)

    def test_never_two_states_mixed_however_often_it_changes(self):
        array, store = make(WHOLE)
        states = [shard([data(10 * n + i) for i in range(INNER)]) for n in range(9)]

        def replace(call):
            if call.ranges and call.ranges[0][0] >= 0 and states:
                store.inner.put("c/0", states.pop())

        store.before = replace
        found = set()
        while states:
            result = every(array)
            found.add(result[0] // 10)
            assert result == {i: result[0] + i for i in range(INNER)}
        assert every(array) == {i: i for i in range(INNER)}

    def test_one_that_keeps_changing_is_read_whole(self):
        array, store = make(WHOLE)
        store.before = lambda call: call.ranges and store.inner.put("c/0", WHOLE)
        assert every(array) == {i: i for i in range(INNER)}
        assert store.calls[-1].operation == "get"

    def test_one_that_keeps_changing_and_is_too_large_is_an_error(self):
        gap = shard([data(i) for i in range(INNER)], "start") + bytes(20 << 20)
        array, store = make(gap, [sharding((SIDE,), index_location="start")])
        store.before = lambda call: call.ranges and store.inner.put("c/0", gap)
        assert set(every(array).values()) == {"keeps changing while it is read"}
        store.before = lambda call: None
        assert every(array) == {i: i for i in range(INNER)}

    @pytest.mark.parametrize("kind", [StoreTimeout, StoreUnavailable, StoreAccessDenied])
    def test_a_store_that_fails_to_give_the_whole_shard_is_no_conflict(self, kind):
        array, store = make(WHOLE)

        def trouble(call):
            if call.ranges:
                store.inner.put("c/0", WHOLE)
            elif call.operation == "get":
                raise kind(call.key, "no answer")

        store.before = trouble
        errors = [result.error for result in array.read_chunks([(n,) for n in range(INNER)])]
        assert {error.reason for error in errors} == {"no answer"}

    def test_a_store_that_fails_fails_only_now(self):
        array, store = make(WHOLE)

        def fail(call):
            raise StoreError(call.key, "no answer")

        store.before = fail
        assert set(every(array).values()) == {"no answer"}
        store.before = lambda call: None
        assert every(array) == {i: i for i in range(INNER)}


class TestBadShards:
    @pytest.mark.parametrize("stored", [b"", WHOLE[:1], WHOLE[: INDEX - 1], WHOLE[-INDEX + 1 :]])
    def test_too_short(self, stored):
        array, _ = make(stored)
        assert set(every(array).values()) == {
            f"a shard of {len(stored)} bytes has no room for its index"
        }

    def test_any_byte_of_the_index_flipped(self):
        for position in range(len(WHOLE) - INDEX, len(WHOLE)):
            bad = bytearray(WHOLE)
            bad[position] ^= 0x10
            array, _ = make(bytes(bad))
            assert all("CRC-32C" in str(reason) for reason in every(array).values()), position

    @pytest.mark.parametrize(("entry", "reason"), [
        ((MISSING, SIZE), "half missing"),
        ((0, MISSING), "half missing"),
        ((0, 0), "no bytes"),
        ((8, 0), "no bytes"),
        ((len(WHOLE), SIZE), "outside"),
        ((len(WHOLE) - SIZE + 1, SIZE), "outside"),
        ((MISSING - 1, SIZE), "outside"),
        ((2**63, 2**63), "outside"),
        ((0, SIZE + 1), "at most"),
        ((0, SIZE - 1), "expected"),
    ])  # fmt: skip
    def test_an_entry_that_cannot_be_concerns_its_inner_chunk_alone(self, entry, reason):
        array, _ = make(shard([data(i) for i in range(INNER)], entries={3: entry}))
        found = every(array)
        assert reason in found.pop(3)
        assert found == {i: i for i in range(INNER) if i != 3}

    def test_an_index_at_the_start_ends_before_the_first_chunk(self):
        stored = shard([data(i) for i in range(INNER)], "start", entries={3: (INDEX - 1, SIZE)})
        array, _ = make(stored, [sharding((SIDE,), index_location="start")])
        found = every(array)
        assert "outside" in found.pop(3)
        assert found == {i: i for i in range(INNER) if i != 3}

    def test_shared_overlapping_disordered_and_gapped_entries_are_legal(self):
        body = np.array([1, 1, 1, 1, 1, 1, 9, 9, 5, 5, 5, 5], "<i2").tobytes()
        entries = {0: (16, 8), 1: (0, 8), 2: (4, 8), 3: (0, 8), 4: (16, 8)}
        array, _ = make(shard([body, *[None] * (INNER - 1)], entries=entries))
        assert every(array) == {0: 5, 1: 1, 2: 1, 3: 1, 4: 5, 5: 7, 6: 7, 7: 7}

    @pytest.mark.parametrize("location", ["start", "end"])
    def test_entries_that_point_at_the_index(self, location, tmp_path):
        """Each inner chunk is what zarr-python reads, or an error of its own."""
        index = 0 if location == "start" else INNER * SIZE
        body = INDEX if location == "start" else 0
        entries = {
            1: (body + SIZE // 2, SIZE), 3: (index, SIZE), 5: (index + 8, SIZE),
            6: (index + INDEX - SIZE, SIZE),
        }  # fmt: skip
        stored = shard([data(i) for i in range(INNER)], location, entries=entries)
        codecs = [sharding((SIDE,), index_location=location)]
        length = INNER * SIDE
        (tmp_path / "c").mkdir()
        (tmp_path / "c/0").write_bytes(stored)
        (tmp_path / "zarr.json").write_bytes(array_document((length,), (length,), codecs=codecs))
        expected = zarr.open_array(tmp_path, mode="r")[:].reshape(INNER, SIDE)
        array, _ = make(stored, codecs)
        for result in array.read_chunks([(number,) for number in range(INNER)]):
            (number,) = result.index
            if location == "start" and number in (3, 5, 6):
                assert "outside" in result.error.reason
            else:
                assert result.chunk.tolist() == expected[number].tolist()

    def test_a_store_that_returns_too_little(self):
        array, store = make(WHOLE)
        inner = store.inner.get_ranges

        def short(key, ranges):
            blobs = inner(key, ranges)
            return [type(b)(b.data[: len(b.data) - (ranges[0].offset >= 0)], b.info) for b in blobs]

        store.inner.get_ranges = short
        assert all("were asked for" in str(reason) for reason in every(array).values())


class TestIndexCodecs:
    @pytest.mark.parametrize("location", ["start", "end"])
    @pytest.mark.parametrize("codecs", [
        [LITTLE],
        [{"name": "bytes", "configuration": {"endian": "big"}}],
        [{"name": "bytes", "configuration": {"endian": "big"}}, CRC32C, CRC32C],
        [{"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE],
    ])  # fmt: skip
    def test_any_of_a_fixed_size(self, codecs, location):
        checksums = sum(codec == CRC32C for codec in codecs)
        size = 16 * INNER + 4 * checksums
        first = size if location == "start" else 0
        entries = np.array([(first + i * SIZE, SIZE) for i in range(INNER)])
        if codecs[0]["name"] == "transpose":
            entries = entries.T
        big = codecs[0].get("configuration", {}).get("endian") == "big"
        index = entries.astype(">u8" if big else "<u8").tobytes()
        for _ in range(checksums):
            index = with_checksum(index)
        body = b"".join(data(i) for i in range(INNER))
        stored = index + body if location == "start" else body + index
        array, store = make(
            stored, [sharding((SIDE,), index_codecs=codecs, index_location=location)]
        )
        assert every(array) == {i: i for i in range(INNER)}
        assert store.calls[0].ranges == ((first and 0, size) if first else (-size, size),)


class TestAround:
    CODECS = (sharding((SIDE,)), CRC32C, GZIP)

    def test_read_whole_and_kept(self):
        array, store = make(gzip.compress(with_checksum(WHOLE)), self.CODECS)
        assert every(array) == {i: i for i in range(INNER)}
        assert [call.operation for call in store.calls] == ["info", "get"]
        store.calls.clear()
        assert read(array, 5) == {5: 5}
        assert [call.operation for call in store.calls] == ["info"]

    def test_replaced(self):
        array, store = make(gzip.compress(with_checksum(WHOLE)), self.CODECS)
        assert read(array, 5) == {5: 5}
        other = shard([data(20 + i) for i in range(INNER)])
        store.inner.put("c/0", gzip.compress(with_checksum(other)))
        assert every(array) == {i: 20 + i for i in range(INNER)}

    @pytest.mark.parametrize("stored", [
        b"", WHOLE, gzip.compress(WHOLE), gzip.compress(b""), gzip.compress(with_checksum(b"")),
        gzip.compress(with_checksum(WHOLE))[:-3], gzip.compress(with_checksum(WHOLE[:50])),
    ])  # fmt: skip
    def test_what_cannot_be_undone(self, stored):
        array, _ = make(stored, self.CODECS)
        assert all(isinstance(reason, str) for reason in every(array).values())

    def test_a_bomb_is_stopped_at_what_memory_allows(self):
        """A shard could legally have 2 MiB of gaps; this one claims many more."""
        bomb = gzip.compress(with_checksum(bytes(64 << 20)), 9)
        array, _ = make(bomb, self.CODECS)
        assert all("more than" in reason for reason in every(array).values())

    def test_its_memory_is_reckoned_with(self):
        plain, _ = make(WHOLE)
        wrapped, _ = make(gzip.compress(with_checksum(WHOLE)), self.CODECS)
        # The index, and the shard before and after.
        assert plain.shard_cost >= INDEX
        assert wrapped.shard_cost >= plain.shard_cost + 2 * len(WHOLE)


class TestNested:
    def nested(self, outer_entries=None, inner=None):
        """Two shards of four chunks each, in a shard."""
        halves = [shard([data(i) for i in range(4 * half, 4 * half + 4)]) for half in range(2)]
        if inner is not None:
            halves[1] = inner
        return shard(halves, entries=outer_entries)

    CODECS = (sharding((4 * SIDE,), codecs=[sharding((SIDE,))]),)
    AROUND = (sharding((4 * SIDE,), codecs=[sharding((SIDE,)), GZIP]),)

    def test_by_range(self):
        array, store = make(self.nested(), self.CODECS)
        assert array.layout.read.counts == (INNER,)
        assert read(array, 5) == {5: 5}
        half = 4 * SIZE + 4 * 16 + 4
        assert [call.ranges for call in store.calls] == [
            ((-36, 36),), ((2 * half - 68, 68),), ((half + SIZE, SIZE),)
        ]  # fmt: skip
        store.calls.clear()
        assert every(array) == {i: i for i in range(INNER)}
        # The index of the other half, and the data of each half in one request.
        assert store.count("ranges") == 3

    def test_a_bad_inner_shard_concerns_its_chunks_alone(self):
        bad = bytearray(shard([data(0)] * 4))
        bad[-1] ^= 1
        array, _ = make(self.nested(inner=bytes(bad)), self.CODECS)
        found = every(array)
        assert {i: found.pop(i) for i in range(4)} == {i: i for i in range(4)}
        assert all("CRC-32C" in reason for reason in found.values())

    @pytest.mark.parametrize("entry", [(0, 0), (MISSING, 8), (2**60, 100), (0, 10)])
    def test_a_bad_entry_of_an_inner_shard(self, entry):
        array, _ = make(self.nested(outer_entries={1: entry}), self.CODECS)
        found = every(array)
        assert {i: found.pop(i) for i in range(4)} == {i: i for i in range(4)}
        assert all(isinstance(reason, str) for reason in found.values())

    def test_an_inner_shard_that_is_the_whole_object(self):
        """Outer and inner index end at the same byte, and are not each other's."""
        size = 2 * SIZE + 16 * 4
        entries = [(0, SIZE), (SIZE, SIZE), (0, size), (0, size)]
        stored = data(3) + data(4) + np.array(entries, "<u8").tobytes()
        inner = sharding((SIDE,), index_codecs=[LITTLE])
        codecs = [sharding((4 * SIDE,), codecs=[inner], index_codecs=[LITTLE])]
        array, _ = make(stored, codecs)
        found = every(array)
        assert [found[i] for i in (0, 1, 4, 5)] == [3, 4, 3, 4]
        assert all("at most" in found[i] for i in (2, 3, 6, 7))

    def test_an_inner_shard_larger_than_a_quarter_of_the_memory(self):
        """Only what is asked for is read of it, so it may be of any size."""
        big = shard([bytes(100_000), *map(data, (1, 2, 3))], entries={0: (0, SIZE)})
        array, _ = make(shard([shard(list(map(data, range(4)))), big]), self.CODECS, memory=100_000)
        assert every(array) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 0, 5: 1, 6: 2, 7: 3}

    def test_codecs_around_an_inner_shard(self):
        halves = [
            gzip.compress(shard([data(i) for i in range(4 * half, 4 * half + 4)]))
            for half in range(2)
        ]
        array, store = make(shard(halves), self.AROUND)
        assert every(array) == {i: i for i in range(INNER)}
        store.calls.clear()
        assert read(array, 6) == {6: 6}
        assert store.count("ranges", "get") == 0

    def test_a_bomb_for_an_inner_shard(self):
        halves = [gzip.compress(bytes(8 << 20), 9), gzip.compress(shard([data(5)] * 4))]
        array, _ = make(shard(halves), self.AROUND)
        found = every(array)
        assert all("more than" in found.pop(i) for i in range(4))
        assert set(found.values()) == {5}


@pytest.mark.parametrize("order", [[1, 0, 2], [2, 0, 1], [2, 1, 0]])
@pytest.mark.parametrize("inner_order", [None, [1, 2, 0]])
def test_transposed_shards_as_tensorstore_reads_them(tmp_path, order, inner_order):
    """The inner chunk shape is in transposed space, which zarr-python takes otherwise."""
    import tensorstore as ts

    codecs = [LITTLE] if inner_order is None else [
        {"name": "transpose", "configuration": {"order": inner_order}}, LITTLE
    ]  # fmt: skip
    chunks = (4, 6, 10)
    inner = tuple(chunks[axis] // 2 for axis in order)
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": str(tmp_path)},
        "metadata": {
            "shape": [7, 13, 11],
            "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "codecs": [
                {"name": "transpose", "configuration": {"order": order}},
                sharding(inner, codecs=codecs),
            ],
        },
    }
    written = ts.open(spec, create=True).result()
    numbers = np.arange(7 * 13 * 11, dtype="<i2").reshape(7, 13, 11)
    written[...] = numbers
    array = open_array(MemoryStore.of_directory(tmp_path))
    grid = array.layout.read
    assert grid.regular_shape == (2, 3, 5)
    found = np.full(numbers.shape, -1, "<i2")
    for result in array.read_chunks(list(np.ndindex(*grid.counts))):
        assert result.error is None
        valid = tuple(map(slice, grid.valid_shape(result.index)))
        start = grid.origin(result.index)
        where = tuple(slice(o, o + v.stop) for o, v in zip(start, valid, strict=True))
        found[where] = result.chunk[valid]
    assert np.array_equal(found, numbers)
