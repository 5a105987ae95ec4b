"""Chunks that are changed in memory, and how they are stored."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.arrays import open_array
from tests.fs.documents import GZIP, LITTLE, array_document, sharding
from tests.fs.write_store import WriteStore
from tests.soak import examples
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.cache.write.dirty_chunk import DirtyChunk
from zarrfs.cache.write.scattered_changes import ScatteredChanges
from zarrfs.errors import StoreConflict
from zarrfs.store.base import ANY

U1 = np.dtype("u1")


def bytes_of(*values):
    return np.array(values, np.uint8)


def known(*bits):
    return np.array(bits, bool)


def test_a_chunk_is_whole_when_every_element_inside_the_array_is_new():
    dirty = DirtyChunk((2, 3), U1, (2, 2))
    assert not dirty.whole
    dirty.write((slice(0, 2), slice(0, 1)), bytes_of(1, 2).reshape(2, 1), U1)
    dirty.write((slice(0, 2), slice(0, 1)), bytes_of(3, 4).reshape(2, 1), U1)
    assert not dirty.readable
    dirty.write((slice(0, 2), slice(1, 2)), bytes_of(5, 6).reshape(2, 1), U1)
    assert dirty.whole
    assert dirty.readable
    assert dirty.chunk[:, :2].tolist() == [[3, 5], [4, 6]]


def test_old_elements_come_from_the_stored_chunk():
    dirty = DirtyChunk((4,), U1, (4,))
    dirty.write((slice(1, 2),), bytes_of(9), U1)
    dirty.complete_with(bytes_of(1, 2, 3, 4))
    assert dirty.chunk.tolist() == [1, 9, 3, 4]
    assert dirty.readable
    assert not dirty.whole


def test_the_bytes_of_an_element_may_come_one_by_one():
    dirty = DirtyChunk((2,), np.dtype("<u4"), (2,))
    assert dirty.write_part((1,), bytes_of(1, 2, 0, 0), known(1, 1, 0, 0))
    assert not dirty.readable
    dirty.complete_with(np.array([7, 0xAABBCCDD], "<u4"))
    assert dirty.chunk.tolist() == [7, 0xAABB0201]
    assert dirty.write_part((1,), bytes_of(0, 0, 3, 4), known(0, 0, 1, 1))
    assert dirty.chunk.tolist() == [7, 0x04030201]
    assert not dirty.parts
    assert dirty.write_part((1,), bytes_of(5, 0, 0, 0), known(1, 0, 0, 0))
    assert dirty.chunk.tolist() == [7, 0x04030205]
    dirty.write((slice(0, 1),), np.array([8], "<u4"), np.dtype("<u4"))
    assert dirty.whole


def test_a_whole_element_replaces_its_parts():
    dirty = DirtyChunk((2,), np.dtype("<u2"), (2,))
    assert dirty.write_part((0,), bytes_of(1, 0), known(1, 0))
    dirty.write((slice(0, 1),), np.array([0xAABB], "<u2"), np.dtype("<u2"))
    dirty.complete_with(np.array([1, 2], "<u2"))
    assert dirty.chunk.tolist() == [0xAABB, 2]


def test_parts_are_limited():
    dirty = DirtyChunk((1000,), np.dtype("<u2"), (1000,))
    taken = [dirty.write_part((i,), bytes_of(1, 0), known(1, 0)) for i in range(1000)]
    assert taken.index(False) < 100
    # What is there already may grow all the same.
    assert dirty.write_part((0,), bytes_of(0, 1), known(0, 1))


def test_what_changes_while_it_is_stored_stays_new_and_nothing_else():
    dirty = DirtyChunk((4,), U1, (4,))
    dirty.write((slice(0, 2),), bytes_of(1, 2), U1)
    copy = dirty.begin_store()
    dirty.write((slice(1, 2),), bytes_of(22), U1)
    copy.complete_with(bytes_of(90, 91, 92, 93))
    assert not dirty.stored(copy)
    assert dirty.marked.tolist() == [False, True, False, False]
    assert dirty.chunk.tolist() == [1, 22, 92, 93]
    # By now another has changed the first element.
    copy = dirty.begin_store()
    copy.complete_with(bytes_of(50, 2, 92, 93))
    assert copy.chunk.tolist() == [50, 22, 92, 93]
    assert dirty.stored(copy)


def test_parts_that_come_while_it_is_stored_stay():
    dirty = DirtyChunk((2,), np.dtype("<u2"), (2,))
    dirty.write_part((0,), bytes_of(1, 0), known(1, 0))
    copy = dirty.begin_store()
    dirty.write_part((1,), bytes_of(0, 2), known(0, 1))
    copy.complete_with(np.array([0xAAAA, 0xBBBB], "<u2"))
    assert not dirty.stored(copy)
    assert list(dirty.parts) == [(1,)]
    assert dirty.chunk.tolist() == [0xAA01, 0x02BB]


@examples(150)
@given(data=st.data(), size=st.sampled_from((1, 2, 3, 8, 16)))
def test_any_changes_and_stores(data, size):
    """Against plain bytes: what is in memory, and what would be stored."""
    shape, valid = (3, 4), (3, 3)
    plain = np.dtype(f"V{size}")
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    stored = random.integers(0, 256, (*shape, size), np.uint8)
    now = stored.copy()
    dirty = DirtyChunk(shape, plain, valid)

    def as_chunk(cells):
        return np.ascontiguousarray(cells).view(plain).reshape(shape)

    def cells():
        return np.frombuffer(dirty.chunk.tobytes(), np.uint8).reshape(*shape, size)

    copy = None
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(("write", "part", "base", "begin", "end")))
        if step == "write":
            low = [data.draw(st.integers(0, n - 1)) for n in valid]
            high = [data.draw(st.integers(i + 1, n)) for i, n in zip(low, valid, strict=True)]
            where = tuple(map(slice, low, high))
            now[where] = random.integers(0, 256, now[where].shape, np.uint8)
            values = np.ascontiguousarray(now[where]).view(plain)[..., 0]
            dirty.write(where, values, plain)
        elif step == "part":
            place = tuple(data.draw(st.integers(0, n - 1)) for n in valid)
            value = random.integers(0, 256, size, np.uint8)
            bits = random.integers(0, 2, size).astype(bool)
            now[place][bits] = value[bits]
            assert dirty.write_part(place, value, bits)
        elif step == "base":
            dirty.complete_with(as_chunk(stored))
        elif step == "begin":
            copy = dirty.begin_store()
            copy.complete_with(as_chunk(stored))
            begun = copy.chunk.tobytes()
        elif copy is not None:
            assert copy.chunk.tobytes() == begun, "what is being stored must not change"
            stored = np.frombuffer(copy.chunk.tobytes(), np.uint8).reshape(*shape, size).copy()
            if dirty.stored(copy):
                dirty = DirtyChunk(shape, plain, valid)
            copy = None
        if dirty.readable:
            assert (cells()[:, :3] == now[:, :3]).all()
    dirty.complete_with(as_chunk(stored))
    assert (cells()[:, :3] == now[:, :3]).all()


# --- what is stored ---------------------------------------------------------------


def writer(document, *, store_fill=False, objects=None):
    store = WriteStore({"zarr.json": document, **(objects or {})})
    array = open_array(store)
    return store, ChunkWriter(array, store_fill=store_fill, largest_whole=1 << 20)


NAN = 0x7FF8000000000123
FILLS = {
    "zero": ("float64", 0.0, 0, -0.0),
    "negative zero": ("float64", -0.0, 1 << 63, 0.0),
    "nan": ("float64", f"0x{NAN:016x}", NAN, float("nan")),
}


@pytest.mark.parametrize(("dtype", "fill", "bits", "other"), FILLS.values(), ids=FILLS)
def test_fill_is_compared_bit_by_bit(dtype, fill, bits, other):
    document = array_document((2,), (2,), data_type=dtype, fill_value=fill)
    store, chunks = writer(document, objects={"c/0": bytes(16)})
    near = np.array([bits, struct.unpack("<Q", struct.pack("<d", other))[0]], "<u8").view("<f8")
    chunks.write((0,), {(0,): near}, ANY)
    assert store.objects["c/0"] == near.tobytes()
    chunks.write((0,), {(0,): np.array([bits, bits], "<u8").view("<f8")}, ANY)
    assert "c/0" not in store.objects


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 16, 17])
def test_fill_of_elements_of_any_size(size):
    fill = list(range(1, size + 1))
    document = array_document(
        (2, 2), (2, 2), data_type=f"r{8 * size}", fill_value=fill, codecs=[{"name": "bytes"}]
    )
    store, chunks = writer(document)
    plain = np.dtype(f"V{size}")
    whole = np.frombuffer(bytes(fill) * 4, plain).reshape(2, 2).copy()
    chunks.write((0, 0), {(0, 0): whole}, ANY)
    assert "c/0/0" not in store.objects
    whole.reshape(-1).view(np.uint8)[-1] ^= 1
    chunks.write((0, 0), {(0, 0): whole}, ANY)
    assert store.objects["c/0/0"] == whole.tobytes()


def test_fill_of_a_scalar():
    store, chunks = writer(array_document((), ()))
    chunks.write((), {(): np.array(8, "<i2")}, ANY)
    assert store.objects["c"] == b"\x08\0"
    chunks.write((), {(): np.array(7, "<i2")}, ANY)
    assert "c" not in store.objects


def test_store_fill_stores_it():
    store, chunks = writer(array_document((2,), (2,)), store_fill=True)
    chunks.write((0,), {(0,): np.array([7, 7], "<i2")}, ANY)
    assert store.objects["c/0"] == np.array([7, 7], "<i2").tobytes()


def test_overhang_is_stored_as_fill_value():
    store, chunks = writer(array_document((3, 3), (2, 2)))
    chunks.write((1, 1), {(1, 1): np.arange(1, 5, dtype="<i2").reshape(2, 2)}, ANY)
    assert store.objects["c/1/1"] == np.array([1, 7, 7, 7], "<i2").tobytes()
    # Nothing of what is inside differs from the fill value.
    chunks.write((1, 1), {(1, 1): np.array([[7, 1], [2, 3]], "<i2")}, ANY)
    assert "c/1/1" not in store.objects


def test_an_inner_chunk_of_fill_is_missing_and_a_shard_of_them_deleted():
    document = array_document((4,), (4,), codecs=[sharding((2,), codecs=[LITTLE, GZIP])])
    store, chunks = writer(document)
    fill = np.array([7, 7], "<i2")
    chunks.write((0,), {(0,): np.array([1, 2], "<i2"), (1,): fill}, ANY)
    index = np.frombuffer(store.objects["c/0"][-36:-4], "<u8")
    assert index[2:].tolist() == [2**64 - 1] * 2
    chunks.write((0,), {(0,): fill}, ANY)
    assert "c/0" not in store.objects


def test_a_shard_that_is_new_as_a_whole_is_not_read():
    document = array_document((3,), (4,), codecs=[sharding((2,))])
    store, chunks = writer(document, objects={"c/0": b"damaged"})
    store.requests.clear()
    chunks.write((0,), {(0,): np.array([1, 2], "<i2"), (1,): np.array([3, 4], "<i2")}, ANY)
    assert [request.operation for request in store.requests] == ["put"]


@pytest.mark.parametrize("codecs", [[LITTLE], [sharding((1,))]], ids=["chunk", "shard"])
def test_another_state_than_expected_is_a_conflict(codecs):
    _store, chunks = writer(array_document((2,), (2,), codecs=codecs))
    elements = np.array([1, 2], "<i2")
    change = {(0,): elements if codecs == [LITTLE] else elements[:1]}
    before, now = chunks.write((0,), change, None)
    assert before is None
    with pytest.raises(StoreConflict):
        chunks.write((0,), change, None)
    assert chunks.write((0,), change, now)[0] == now


U2 = np.dtype("<u2")
FORM = (8, 16), U2, (8, 16)


def _few(*numbers: int) -> ScatteredChanges:
    few = ScatteredChanges()
    for number in numbers:
        where = (slice(number, number + 1), slice(0, 4))
        few.add(where, np.full((1, 4), number, U2), U2)
    return few


def test_few_changes_are_seen_over_what_is_stored():
    base = np.broadcast_to(np.array(9, U2), (8, 16))
    chunk = _few(2, 5).over(base)
    assert chunk[2].tolist() == [2] * 4 + [9] * 12
    assert chunk[5].tolist() == [5] * 4 + [9] * 12
    assert (chunk[[0, 1, 3, 4, 6, 7]] == 9).all()
    assert np.array_equal(_few(2, 5).begin_store().completed_with(base), chunk)
    assert np.array_equal(_few(2, 5).copy(*FORM).completed_with(base), chunk)


def test_few_changes_that_are_stored_are_forgotten_and_later_ones_are_not():
    few = _few(2, 5)
    paid = few.charged
    few.begin_store()
    few.add((slice(7, 8), slice(0, 1)), np.full((1, 1), 7, U2), U2)
    assert few.stored() == paid
    assert not few.empty
    assert few.charged > 0
    assert few.over(np.zeros((8, 16), U2)).sum() == 7
    assert few.stored() == 0
    few.begin_store()
    few.stored()
    assert few.empty
    assert few.charged == 0


def test_few_changes_that_become_many_while_they_are_stored():
    """What was being stored is no change any more, so that what others store then stays."""
    few = _few(2, 5)
    copy = few.begin_store()
    few.add((slice(7, 8), slice(0, 1)), np.full((1, 1), 7, U2), U2)
    chunk = few.turned(*FORM)
    chunk.write((slice(6, 7), slice(0, 1)), np.full((1, 1), 6, U2), U2)
    copy.complete_with(np.zeros((8, 16), U2))
    assert not chunk.stored(copy)
    assert np.argwhere(chunk.marked).tolist() == [[6, 0], [7, 0]]
    assert chunk.chunk[:, 0].tolist() == [0, 0, 2, 0, 0, 5, 6, 7]


def test_few_changes_never_make_a_chunk_whole():
    few = _few()
    values = np.zeros((1, 16), U2)
    for number in range(100):
        if not few.takes((8, 16), values):
            break
        few.add((slice(number % 8, number % 8 + 1), slice(0, 16)), values, U2)
    assert not few.copy(*FORM).whole
