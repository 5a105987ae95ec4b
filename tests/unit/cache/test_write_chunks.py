"""Tiles that are changed in memory, and how chunks are stored."""

import struct
from threading import Lock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.arrays import open_array
from tests.fs.documents import GZIP, LITTLE, array_document, sharding
from tests.fs.write_store import WriteStore
from tests.soak import examples
from tests.traced import traced
from zarrfs.array import chunk_writer
from zarrfs.array.chunk_writer import ChunkWriter
from zarrfs.array.shards.shard_writer import InnerChanges
from zarrfs.cache.write import tile_changes
from zarrfs.cache.write.tile_changes import TileChanges
from zarrfs.cache.write.tile_copy import TileCopy
from zarrfs.cache.write.tiles import TileForm
from zarrfs.errors import StoreConflict, StoreError
from zarrfs.store.base import ANY

U1 = np.dtype("u1")
U2 = np.dtype("<u2")


def tile(shape, dtype, valid=None, chunk=None):
    return TileChanges(TileForm(shape, np.dtype(dtype), valid or shape, chunk or shape))


def only(changes):
    """The place of the chunk of a tile that is one chunk."""
    return (0,) * len(changes.form.shape)


def now(changes):
    return changes.now(only(changes), 0)


def over(changes, base):
    return changes.over(only(changes), base, 0)


def stored_over(copy: TileCopy, base):
    """The chunk that is to be stored, of a tile that is one chunk."""
    ((place, whole),) = copy.places()
    return copy.part(place) if whole else copy.merged(place, base)


def bytes_of(*values):
    return np.array(values, np.uint8)


def known(*bits):
    return np.array(bits, bool)


def test_parts_are_limited():
    dirty = tile((1000,), U2)
    taken = [dirty.write_part((i,), bytes_of(1, 0), known(1, 0)) for i in range(1000)]
    assert taken.index(False) < 100
    # What is there already may grow all the same.
    assert dirty.write_part((0,), bytes_of(0, 1), known(0, 1))


def test_a_tile_whose_rest_comes_before_storing_has_ended_is_whole():
    """Storing ends for all tiles of an object at the same time."""
    dirty = tile((4,), U1)
    dirty.write((slice(0, 2),), bytes_of(1, 2), U1)
    copy = dirty.begin_store()
    dirty.write((slice(1, 2),), bytes_of(3), U1)
    assert not dirty.stored(copy, 0)
    for place in (0, 2, 3):
        assert not dirty.whole
        dirty.write((slice(place, place + 1),), bytes_of(place), U1)
    assert dirty.whole
    dirty.end_store()
    assert now(dirty).tolist() == [0, 3, 2, 3]


def test_chunks_of_a_tile_that_are_new_as_a_whole_are_told_from_others():
    """The latter are read first, which fails if they are damaged."""
    dirty = tile((6, 4), U1, (6, 3), (2, 2))
    dirty.write((slice(0, 2), slice(0, 2)), np.ones((2, 2), U1), U1)
    dirty.write((slice(0, 2), slice(2, 3)), np.ones((2, 1), U1), U1)
    dirty.write((slice(2, 3), slice(0, 3)), np.ones((1, 3), U1), U1)
    places = dict(dirty.begin_store().places())
    assert places == {(0, 0): True, (0, 1): True, (1, 0): False, (1, 1): False}


def test_what_could_not_be_stored_may_still_be_read_by_the_store():
    """One that was given up reads on, whatever is written meanwhile."""
    dirty = tile((2,), U1)
    dirty.write((slice(0, 2),), bytes_of(1, 2), U1)
    copy = dirty.begin_store()
    dirty.end_store()
    dirty.write((slice(0, 1),), bytes_of(9), U1)
    assert copy.part((0,)).tolist() == [1, 2]
    assert dirty.begin_store().part((0,)).tolist() == [9, 2]


def test_parts_that_come_while_it_is_stored_stay():
    dirty = tile((2,), U2)
    dirty.write_part((0,), bytes_of(1, 0), known(1, 0))
    copy = dirty.begin_store()
    dirty.write_part((1,), bytes_of(0, 2), known(0, 1))
    assert stored_over(copy, np.array([0xAAAA, 0xBBBB], U2)).tolist() == [0xAA01, 0xBBBB]
    assert not dirty.stored(copy, 0)
    assert list(dirty.parts) == [(1,)]
    assert over(dirty, np.array([0xAA01, 0xBBBB], U2)).tolist() == [0xAA01, 0x02BB]


@pytest.mark.parametrize("marked", [True, False], ids=["marks given", "no marks"])
def test_gathered_elements_win_over_few_older_ones(marked):
    changes = few(2, 40)
    where = (slice(0, 32), slice(0, 16))
    memory = np.zeros((64, 16), U2)
    memory[where] = 9
    marks = np.zeros(memory.shape, bool) if marked else None
    changes.write_boxes([(where, memory[where])], U2, memory, marks)
    chunk = over(changes, np.full((64, 16), 8, U2))
    assert np.shares_memory(changes.chunk, memory)
    assert (chunk[:32] == 9).all()
    assert chunk[40].tolist() == [40] * 4 + [8] * 12


def test_elements_adopted_while_others_are_stored_stay_new():
    dirty = tile((4,), U1)
    dirty.write((slice(0, 2),), bytes_of(1, 2), U1)
    copy = dirty.begin_store()
    dirty.adopt(bytes_of(0, 22, 33, 0), known(0, 1, 1, 0))
    assert not dirty.stored(copy, 0)
    assert dirty.copy().marked.tolist() == [False, True, True, False]
    assert over(dirty, bytes_of(1, 2, 93, 94)).tolist() == [1, 22, 33, 94]


def test_the_marks_of_new_elements_count_as_memory_until_the_tile_is_whole():
    dirty = tile((1000,), U2)
    dirty.write((slice(0, 900),), np.ones(900, U2), U2)
    beside = dirty.taken - dirty.chunk.nbytes
    assert beside >= dirty.copy().marked.nbytes
    dirty.write((slice(900, 1000),), np.ones(100, U2), U2)
    assert dirty.whole
    assert dirty.taken - dirty.chunk.nbytes == beside - 1000


FORMS = {
    "one chunk": TileForm((4, 6), U2, (3, 5), (4, 6)),
    "many chunks": TileForm((4, 6), U2, (3, 5), (2, 3)),
    "single elements": TileForm((4, 6), U2, (4, 6), (1, 1)),
    "one axis": TileForm((12,), U2, (11,), (3,)),
    "four axes": TileForm((2, 4, 2, 2), U2, (2, 3, 1, 2), (1, 2, 1, 2)),
}


@pytest.mark.parametrize("patches", [0, 2, 64])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@examples(30)
@given(data=st.data(), size=st.sampled_from((1, 2, 3, 8, 16)))
def test_any_changes_and_stores(form, patches, data, size):
    """Against plain bytes: what is in memory, and what would be stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_changes, "_PATCH", 1 if patches else 768)
        patch.setattr(tile_changes, "_MOST_PATCHES", patches)
        patch.setattr(tile_changes, "_LARGEST_SHARE", 2)
        _any_changes(form, data, size)


def _any_changes(form: TileForm, data, size) -> None:
    plain = np.dtype(f"V{size}")
    form = form._replace(dtype=plain)
    shape, valid = form.shape, form.valid
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    stored = random.integers(0, 256, (*shape, size), np.uint8)
    now = stored.copy()
    dirty = TileChanges(form)
    counts = [-(-n // c) for n, c in zip(valid, form.chunk, strict=True)]
    inside = tuple(map(slice, valid))

    def as_chunk(cells):
        return np.ascontiguousarray(cells).view(plain)[..., 0]

    def as_cells(chunk):
        return np.frombuffer(chunk.tobytes(), np.uint8).reshape(*chunk.shape, size)

    def seen(*, bring):
        """What readers get; ``bring`` what is stored, or take what is at hand."""
        for place in np.ndindex(*counts):
            part = form.part(place)
            base = as_chunk(stored[part])
            chunk = dirty.over(place, base, 0) if bring else dirty.now(place, 0)
            if chunk is not None:
                cut = tuple(slice(0, n - s.start) for n, s in zip(valid, part, strict=True))
                assert (as_cells(chunk)[cut] == now[part][cut]).all()

    copy, begun = None, None
    for _ in range(data.draw(st.integers(1, 12))):
        step = data.draw(st.sampled_from(("write", "part", "read", "look", "begin", "end")))
        if step == "write":
            low = [data.draw(st.integers(0, n - 1)) for n in valid]
            high = [data.draw(st.integers(i + 1, n)) for i, n in zip(low, valid, strict=True)]
            where = tuple(map(slice, low, high))
            now[where] = random.integers(0, 256, now[where].shape, np.uint8)
            memory = None
            if data.draw(st.booleans()):
                memory = as_chunk(random.integers(0, 256, now.shape, np.uint8))
                memory[where] = as_chunk(now[where])
            values = as_chunk(now[where]) if memory is None else memory[where]
            middle = data.draw(st.integers(low[0] + 1, high[0]))
            cut = middle - low[0]
            first, rest = slice(low[0], middle), slice(middle, high[0])
            parts = [((first, *where[1:]), values[:cut]), ((rest, *where[1:]), values[cut:])]
            dirty.write_boxes(parts if middle < high[0] else parts[:1], plain, memory)
        elif step == "part":
            place = tuple(data.draw(st.integers(0, n - 1)) for n in valid)
            value = random.integers(0, 256, size, np.uint8)
            bits = random.integers(0, 2, size).astype(bool)
            now[place][bits] = value[bits]
            assert dirty.write_part(place, value, bits)
        elif step in ("read", "look"):
            seen(bring=step == "read")
        elif step == "begin":
            copy, begun = dirty.begin_store(), now.copy()
        elif copy is not None:
            after = stored.copy()
            for place, whole in copy.places():
                part = form.part(place)
                base = as_chunk(stored[part])
                chunk = copy.part(place) if whole else copy.merged(place, base)
                after[part] = as_cells(chunk)
            assert (after[inside] == begun[inside]).all(), "what is stored must not change"
            stored = after
            if dirty.stored(copy, 0):
                assert (stored[inside] == now[inside]).all()
                dirty = TileChanges(form)
            copy = None
    seen(bring=False)
    seen(bring=True)
    units, new = dirty.copy().units()
    merged = stored.copy()
    cells = merged.view(f"V{units.itemsize}")
    cells[new] = units[new]
    assert (merged[inside] == now[inside]).all()


# --- what is stored ---------------------------------------------------------------


def writer(document, *, store_fill=False, objects=None, largest_whole=1 << 20, cheap=True):
    store = WriteStore({"zarr.json": document, **(objects or {})}, cheap=cheap)
    array = open_array(store)
    return store, ChunkWriter(array, store_fill=store_fill, largest_whole=largest_whole)


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


def test_batches_of_a_shard_are_added_one_at_a_time(monkeypatch):
    """Threads encode them beside each other."""
    document = array_document((4,), (4,), codecs=[sharding((2,))])
    _store, chunks = writer(document)
    lock, replace, held = Lock(), InnerChanges.replace, []

    def noted(*given) -> None:
        held.append(lock.locked())
        replace(*given)

    monkeypatch.setattr(chunk_writer, "Lock", lambda: lock)
    monkeypatch.setattr(InnerChanges, "replace", noted)
    chunks.write((0,), {(0,): np.array([1, 2], "<i2")}, ANY)
    assert held == [True]


def _with_a_gap(size: int) -> bytes:
    """A shard of two inner chunks, of two elements each, and ``size`` bytes between these."""
    first, second = (np.array(values, "<i2").tobytes() for values in ((1, 2), (3, 4)))
    index = np.array([0, 4, 4 + size, 4], "<u8").tobytes()
    return first + bytes(size) + second + index


@pytest.mark.parametrize("size", [0, 1000])
def test_a_shard_that_is_larger_than_its_chunks_is_rewritten(size):
    """Others may have left bytes in it that are of no chunk."""
    document = array_document((4,), (4,), codecs=[sharding((2,), index_codecs=[LITTLE])])
    store, chunks = writer(document, objects={"c/0": _with_a_gap(size)}, largest_whole=100)
    store.requests.clear()
    chunks.write((0,), {(1,): np.array([5, 6], "<i2")}, ANY)
    # A small shard is read at once.
    assert size or [request.operation for request in store.requests] == ["get", "put"]
    (result,) = chunks.array.read_chunks([(0,)])
    assert result.chunk.tolist() == [1, 2]
    assert len(store.objects["c/0"]) == len(_with_a_gap(0))


@pytest.mark.parametrize("room", [140, 139])
def test_a_distant_shard_is_rewritten_if_there_is_room_for_all_of_it(room):
    document = array_document((4,), (4,), codecs=[sharding((2,), index_codecs=[LITTLE])])
    before = _with_a_gap(240)
    objects = {"c/0": before}
    store, chunks = writer(document, objects=objects, largest_whole=room, cheap=False)
    change = {(1,): np.array([5, 6], "<i2")}
    if 2 * room < len(before):
        with pytest.raises(StoreError, match="-o memory"):
            chunks.write((0,), change, ANY)
        assert store.objects["c/0"] == before
    else:
        chunks.write((0,), change, ANY)
        assert len(store.objects["c/0"]) == len(_with_a_gap(0))


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


def test_a_shard_that_another_replaces_while_its_parts_are_read_is_a_conflict():
    document = array_document((4,), (4,), codecs=[sharding((2,), index_codecs=[LITTLE])])
    store, chunks = writer(document, objects={"c/0": _with_a_gap(1000)}, largest_whole=100)
    other = _with_a_gap(1001)

    def before(request):
        if request.operation == "ranges":
            store.replace("c/0", other)

    store.before = before
    with pytest.raises(StoreConflict):
        chunks.write((0,), {(1,): np.array([5, 6], "<i2")}, ANY)
    assert store.objects["c/0"] == other


def test_a_distant_shard_with_codecs_around_it_is_rewritten_whatever_the_room():
    """It cannot be read in parts."""
    document = array_document((4,), (4,), codecs=[sharding((2,)), GZIP])
    _store, chunks = writer(document, largest_whole=1, cheap=False)
    chunks.write((0,), {(0,): np.array([1, 2], "<i2"), (1,): np.array([3, 4], "<i2")}, ANY)
    chunks.write((0,), {(1,): np.array([5, 6], "<i2")}, ANY)
    results = list(chunks.array.read_chunks([(0,), (1,)]))
    assert [result.chunk.tolist() for result in results] == [[1, 2], [5, 6]]


def few(*numbers: int) -> TileChanges:
    """A tile of (64, 16) elements with a few of them changed, which takes no memory of its own."""
    changes = tile((64, 16), U2)
    for number in numbers:
        where = (slice(number, number + 1), slice(0, 4))
        changes.write(where, np.full((1, 4), number, U2), U2)
    assert changes.chunk is None
    return changes


@pytest.fixture(autouse=True)
def cheap(request, monkeypatch):
    """Patches that cost little beside the small tiles of these tests."""
    if "few" in request.node.name:
        monkeypatch.setattr(tile_changes, "_PATCH", 1)


def test_few_changes_that_are_stored_are_forgotten_and_later_ones_are_not():
    changes = few(2, 5)
    copy = changes.begin_store()
    changes.write((slice(7, 8), slice(0, 1)), np.full((1, 1), 7, U2), U2)
    before = changes.taken
    assert not changes.stored(copy, 0)
    assert changes.taken < before
    assert over(changes, np.zeros((64, 16), U2)).sum() == 7
    assert changes.stored(changes.begin_store(), 0)


def test_few_changes_that_are_stored_leave_room_for_as_many_later_ones():
    changes = few()
    for row in range(0, 60, 6):
        block = (slice(row, row + 6), slice(0, 16))
        changes.write(block, np.full((6, 16), row, U2), U2)
        copy = changes.begin_store()
        changes.write((slice(63, 64), slice(0, 1)), np.full((1, 1), row, U2), U2)
        assert not changes.stored(copy, 0)
        assert changes.chunk is None


def test_few_changes_that_become_many_while_they_are_stored():
    """What was being stored is no change any more, so that what others store then stays."""
    changes = few(2, 5)
    copy = changes.begin_store()
    changes.write((slice(7, 8), slice(0, 1)), np.full((1, 1), 7, U2), U2)
    changes.write((slice(10, 60), slice(0, 16)), np.full((50, 16), 6, U2), U2)
    assert changes.chunk is not None
    assert not changes.stored(copy, 0)
    assert changes.copy().marked[:10].sum() == 1
    assert changes.copy().marked[7, 0]
    assert changes.copy().marked[10:60].all()
    assert over(changes, np.full((64, 16), 8, U2))[:9, 0].tolist() == [8] * 7 + [7, 8]


def test_few_changes_that_become_many_take_no_more_than_the_tile():
    side = 1 << 10
    changes = tile((side, side), U1)
    few = np.ones((1, 4), U1)
    changes.write((slice(1), slice(4)), few, U1)
    assert changes.chunk is None
    many = np.ones((side, side // 2), U1)
    with traced() as peak:
        changes.write((slice(0, side), slice(side // 2)), many, U1)
    assert changes.chunk is not None
    assert peak() < 1.1 * changes.cost(side * side, U1)


def test_stored_elements_are_copied_beside_changes_once():
    """Otherwise each read of a chunk with changes would copy all of it."""
    dirty = tile((4, 6), U2, chunk=(2, 6))
    dirty.write((slice(1, 4), slice(3)), np.full((3, 3), 5, U2), U2)
    assert dirty.now((0, 0), 0) is None
    base = np.full((2, 6), 8, U2)
    first = dirty.over((0, 0), base, 0)
    again = dirty.now((0, 0), 0)
    assert again is not None
    assert np.shares_memory(again, first)
    assert again.tolist() == [[8] * 6, [5] * 3 + [8] * 3]
    assert dirty.now((1, 0), 0) is None
    # Of two loads, the one that began earlier may come later.
    assert (dirty.over((0, 0), np.full((2, 6), 7, U2), 0) != 7).all()


def test_stored_elements_beside_changes_count_until_others_change_them():
    dirty = tile((6,), U2)
    dirty.write((slice(3),), np.full(3, 5, U2), U2)
    new, old = np.full(6, 8, U2), np.full(6, 7, U2)
    assert dirty.over((0,), old, 3).tolist() == [5] * 3 + [7] * 3
    assert dirty.now((0,), 4) is None
    assert dirty.over((0,), new, 4).tolist() == [5] * 3 + [8] * 3
    # Loads that began before that, or before a check, may end later. Nobody else gets theirs.
    for foreign in (3, -1):
        assert dirty.over((0,), old, foreign).tolist() == [5] * 3 + [7] * 3
        assert dirty.now((0,), 4).tolist() == [5] * 3 + [8] * 3


def test_a_tile_that_was_stored_counts_until_others_change_it():
    dirty = tile((6,), U2)
    dirty.write((slice(6),), np.full(6, 5, U2), U2)
    copy = dirty.begin_store()
    dirty.write((slice(3),), np.full(3, 6, U2), U2)
    assert not dirty.stored(copy, 3)
    assert dirty.now((0,), 3).tolist() == [6] * 3 + [5] * 3
    assert dirty.now((0,), 4) is None


def test_a_read_of_a_chunk_with_changes_takes_no_memory_for_another_chunk():
    dirty = tile((256, 256), "<f8")
    dirty.write((slice(200), slice(200)), np.ones((200, 200)), np.dtype("<f8"))
    base = np.zeros((256, 256))
    with traced() as peak:
        dirty.over((0, 0), base, 0)
    assert peak() < base.nbytes // 2


def test_few_changes_never_take_more_than_the_tile(monkeypatch):
    monkeypatch.setattr(tile_changes, "_PATCH", 32)
    changes = few()
    for number in range(1000):
        changes.write((slice(number % 64, number % 64 + 1), slice(0, 1)), np.zeros((1, 1), U2), U2)
        assert changes.taken <= TileChanges.cost(64 * 16, U2)
    assert not changes.whole


@pytest.mark.parametrize("size", [1, 1024])
def test_a_changed_element_takes_no_memory_of_a_whole_tile(size):
    """However large an element is."""
    changes = tile((64 * 1024 // size,), f"V{size}")
    value = np.zeros(1, f"V{size}")
    changes.write((slice(5, 6),), value, value.dtype)
    assert changes.taken < 3000


@pytest.mark.parametrize("shape", [(32, 16), (256, 64)], ids=["no patches", "patches"])
def test_room_is_asked_for_before_it_is_taken(shape):
    """What a change takes is never more than `room_for` says, whatever came before."""
    random = np.random.default_rng(5)
    for _ in range(30):
        changes = tile(shape, U2)
        for _ in range(60):
            low = [int(random.integers(0, n)) for n in shape]
            high = [int(random.integers(i, n)) + 1 for i, n in zip(low, shape, strict=True)]
            values = np.zeros([b - a for a, b in zip(low, high, strict=True)], U2)
            part = random.random() < 0.3
            room = changes.room_for(None if part else values)
            if part:
                changes.write_part(tuple(low), bytes_of(1, 0), known(1, 0))
            else:
                changes.write(tuple(map(slice, low, high)), values, U2)
            assert changes.taken - changes.charged <= room
            changes.charged = changes.taken
