"""From a store that is a round trip away, each byte of a shard is fetched once in a scan."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.fs.documents import array_document, sharding
from tests.fs.fault_store import FaultStore
from tests.fs.memory_store import MemoryStore
from tests.fs.shards import shard
from zarrfs.array.array import Array, ArrayConfig
from zarrfs.array.shards.parts import PartCache
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.store.ranges import Span

SIDE = 100_000
INNER = 8


class Distant:
    """One array of a shard of ``count`` inner chunks, each of which is full of its number."""

    def __init__(self, *, cheap: bool = False, index_memory: int = 4 << 20) -> None:
        self.data = shard([np.full(SIDE, i, "u1").tobytes() for i in range(INNER)])
        length = INNER * SIDE
        document = array_document(
            (length,), (length,), data_type="uint8", codecs=[sharding((SIDE,))]
        )
        self.inner = MemoryStore({"zarr.json": document, "c/0": self.data})
        self.store = FaultStore(self.inner, near=cheap)
        self.parts = PartCache(index_memory)
        metadata = parse_node(json.loads(document), "zarr.json")
        self.array = Array(self.store, "", metadata, self.parts, ArrayConfig(64 << 20))
        self.store.calls.clear()

    def read(self, *numbers: int) -> list[int]:
        found = {r.index: r.chunk for r in self.array.read_chunks([(n,) for n in numbers])}
        return [int(found[n,][-1]) for n in numbers]

    @property
    def requests(self) -> list[Span]:
        """Of bytes, without those for the index."""
        asked = [wanted for call in self.store.calls for wanted in call.ranges or ()]
        return [Span(offset, offset + length) for offset, length in asked if offset >= 0]

    @property
    def fetched(self) -> int:
        return sum(stop - start for start, stop in self.requests)


def test_what_came_along_in_one_pass_is_not_fetched_in_the_next():
    distant = Distant()
    assert distant.read(0, 2, 4, 6) == [0, 2, 4, 6]
    assert len(distant.requests) == 1
    assert distant.read(1, 3) == [1, 3]
    assert distant.read(5, 7) == [5, 7]
    assert len(distant.requests) == 2
    assert distant.fetched == INNER * SIDE


def test_nothing_is_fetched_beside_what_one_chunk_needs():
    distant = Distant()
    assert distant.read(3) == [3]
    assert distant.requests == [Span(3 * SIDE, 4 * SIDE)]


def test_chunks_that_lie_far_apart_bring_nothing_along():
    distant = Distant()
    assert distant.read(0, 7) == [0, 7]
    assert distant.fetched == 2 * SIDE


def test_from_a_disk_nothing_comes_along():
    distant = Distant(cheap=True)
    assert distant.read(0, 2, 4, 6) == [0, 2, 4, 6]
    assert distant.fetched == 4 * SIDE


def test_leftovers_are_of_the_state_that_they_were_fetched_in():
    distant = Distant()
    assert distant.read(0, 2, 4, 6) == [0, 2, 4, 6]
    distant.inner.put("c/0", shard([np.full(SIDE, 9, "u1").tobytes()] * INNER))
    distant.array.forget([(0,)])
    assert distant.read(1, 3) == [9, 9]


def test_a_chunk_that_is_not_stored_is_no_request():
    distant = Distant()
    distant.inner.put("c/0", shard([None] * 4 + [np.full(SIDE, 5, "u1").tobytes()] * 4))
    assert distant.read(0, 2, 4, 6)[2:] == [5, 5]


@pytest.mark.parametrize("index_memory", [1 << 10, 500_000])
def test_leftovers_keep_within_the_memory_for_indexes(index_memory):
    distant = Distant(index_memory=index_memory)
    assert distant.read(0, 2, 4, 6) == [0, 2, 4, 6]
    assert distant.read(1, 3, 5, 7) == [1, 3, 5, 7]
    assert distant.parts.size + distant.parts.leftovers.size <= index_memory


def test_several_who_want_one_shard_fetch_its_index_and_each_byte_once():
    distant = Distant()
    distant.store.before = lambda _call: time.sleep(0.02)
    parts = [[0, 2, 4, 6], [1, 3, 5, 7]] * 2
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda part: distant.read(*part), parts)) == parts
    indexes = [call for call in distant.store.calls if (call.ranges or [(0, 0)])[0][0] < 0]
    assert len(indexes) == 1
    # Those who come last want what others have had already, and fetch that again.
    assert distant.fetched <= 2 * INNER * SIDE
