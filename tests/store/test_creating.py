"""Creating arrays in every store that can be written to."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from zarrfs.array.hierarchy import Hierarchy
from zarrfs.array.making.create import IfExists, Outcome, create_array
from zarrfs.errors import AlreadyExists, StoreError, StoreReadOnly
from zarrfs.format.making.chunk_choice import ChunkConstraints
from zarrfs.format.making.new_array import NewArray

pytestmark = pytest.mark.timeout(60)

ARRAY = NewArray(shape=(30, 20), data_type="uint8", chunks=ChunkConstraints((10, 10)))
V2 = NewArray(shape=(7,), data_type="uint8", zarr_format=2, attributes={"a": 1})


def test_of_many_creators_one_succeeds(writable):
    barrier = threading.Barrier(8)

    def create(number: int) -> Outcome | AlreadyExists:
        array = NewArray(shape=(7,), data_type="uint8", zarr_format=2, attributes={"who": number})
        barrier.wait()
        try:
            return create_array(writable.store, "a", array)
        except AlreadyExists as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(create, range(8)))
    winners = [number for number, end in enumerate(ends) if end is Outcome.CREATED]
    assert len(winners) == 1
    blob = writable.store.get("a/.zattrs", limit=1000)
    assert json.loads(bytes(blob.data)) == {"who": winners[0]}


def test_all_who_want_the_same_array_get_it(writable):
    barrier = threading.Barrier(8)

    def create(_: int) -> Outcome:
        barrier.wait()
        return create_array(writable.store, "a", ARRAY, IfExists.OPEN)

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(create, range(8)))
    # Who puts what is there already may think that it was the first.
    assert set(ends) <= {Outcome.CREATED, Outcome.EXISTED}
    assert Outcome.CREATED in ends


def test_replacing_removes_every_chunk_and_nothing_else(writable):
    store = writable.store
    create_array(store, "a/b", ARRAY)
    for i in range(3):
        for j in range(2):
            store.put(f"a/b/c/{i}/{j}", [bytes(100)], expected=None)
    store.put("a/b/notes.txt", [b"mine"], expected=None)
    store.put("a/c/0", [b"of a neighbour"], expected=None)
    assert create_array(store, "a/b", V2, IfExists.REPLACE) is Outcome.REPLACED
    assert all(store.info(f"a/b/c/{i}/{j}") is None for i in range(3) for j in range(2))
    assert store.info("a/b/zarr.json") is None
    assert store.info("a/b/notes.txt") is not None
    assert store.info("a/c/0") is not None
    assert Hierarchy(store).node("a/b").metadata.attributes == {"a": 1}


def test_attributes_that_somebody_has_left_are_not_taken_over(writable):
    store = writable.store
    store.put("a/.zattrs", [b'{"old": 1}'], expected=None)
    create_array(store, "a", NewArray(shape=(7,), data_type="uint8", zarr_format=2))
    assert Hierarchy(store).node("a").metadata.attributes == {}


def test_an_array_that_cannot_be_read_is_only_replaced(writable):
    store = writable.store
    store.put("a/zarr.json", [b"{"], expected=None)
    for if_exists in (IfExists.FAIL, IfExists.OPEN):
        with pytest.raises(AlreadyExists, match="cannot be read"):
            create_array(store, "a", ARRAY, if_exists)
    assert create_array(store, "a", ARRAY, IfExists.REPLACE) is Outcome.REPLACED


def test_a_store_that_cannot_be_written_to_says_so(harness):
    if harness.store.read_only is None:
        create_array(harness.store, "a", ARRAY)
        return
    with pytest.raises(StoreReadOnly) as caught:
        create_array(harness.store, "a", ARRAY)
    assert isinstance(caught.value, StoreError)
