"""Small objects are stored several at once, and each is still an object of its own."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.fs.documents import array_document
from tests.fs.write_store import WriteStore, refusing
from zarrfs.errors import StoreError, StoreFull
from zarrfs.store.base import ObjectInfo, Put

pytestmark = pytest.mark.timeout(60)

CHUNKS = 100
DATA = np.arange(1, 4 * CHUNKS + 1, dtype="<i2").tobytes()


class Together(WriteStore):
    """groups : keys that were put at once."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.groups: list[list[str]] = []

    def put_many(self, puts: Sequence[Put]) -> list[ObjectInfo | StoreError]:
        self.groups.append([put.key for put in puts])
        return super().put_many(puts)


def made(*, cheap: bool = True) -> Together:
    return Together({"zarr.json": array_document((4 * CHUNKS,), (4,))}, cheap=cheap)


def test_few_puts_for_many_objects(opened):
    store = made()
    mount = opened(store)
    file = mount.edit("array.bin")
    # All but an element of each, so that nothing is stored before it is asked for.
    for i in range(CHUNKS):
        file.write(8 * i, DATA[8 * i : 8 * i + 6])
    file.fsync()
    keys = [key for group in store.groups for key in group]
    assert sorted(keys) == sorted(f"c/{i}" for i in range(CHUNKS))
    assert 1 < max(map(len, store.groups)) <= 32
    assert len(store.groups) < CHUNKS / 4
    assert not mount.write_back.dirty_bytes
    assert not mount.write_back.budget.used
    stored = np.frombuffer(opened(WriteStore(store.objects)).read("array.bin"), "<i2")
    expected = np.frombuffer(DATA, "<i2").copy()
    expected[3::4] = stored[3]
    assert np.array_equal(stored, expected)


def test_where_each_is_a_round_trip_the_store_gets_several_at_once(opened):
    """It sends them beside each other."""
    store = made(cheap=False)
    file = opened(store).edit("array.bin")
    file.write(0, DATA)
    file.fsync()
    assert max(map(len, store.groups)) > 1
    assert store.objects.keys() == {"zarr.json", *(f"c/{i}" for i in range(CHUNKS))}


def test_one_that_fails_stays_dirty_alone(opened):
    store = made()
    mount = opened(store)
    file = mount.edit("array.bin")
    before, store.before = store.before, refusing(StoreFull, "put", key="c/17")
    file.write(0, DATA)
    with pytest.raises(StoreFull):
        file.fsync()
    assert mount.array()._dirty.all() == [(17,)]
    assert len(store.objects) == CHUNKS
    store.before = before
    file.fsync()
    assert not mount.write_back.dirty_bytes
    assert not mount.write_back.budget.used
    assert opened(WriteStore(store.objects)).read("array.bin") == DATA
