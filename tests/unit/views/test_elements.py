"""Elements are the same however their chunks come: at once, some at a time, in any order."""

import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.fs.arrays import Cached
from tests.fs.documents import array_document
from tests.fs.memory_store import MemoryStore
from zarrfs.cache.read.array_chunks import NotCached
from zarrfs.format.chunk_grid import Index
from zarrfs.views.elements.elements import Elements, FlatConfig
from zarrfs.views.elements.window import Window
from zarrfs.views.flat import FlatView

pytestmark = pytest.mark.timeout(120)


class Scattered:
    """An array of which some chunks are not in memory.

    They are delivered in the order and the groups that ``data`` draws.
    """

    def __init__(self, inner: Any, data: Any, missing: Collection[Any] = ()) -> None:
        self._inner = inner
        self._data = data
        self._missing = frozenset(missing)
        self.asked: set[Any] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get_all(self, indices):
        return None if self._missing.intersection(indices) else self._inner.get_all(indices)

    def get_data(self, indices):
        if self._missing.intersection(indices):
            raise NotCached
        return self._inner.get_data(indices)

    def request(self, indices, deliver, done, **_):
        assert len(set(indices)) == len(indices)
        self.asked.update(indices)
        left = self._data.draw(st.permutations(indices))
        while left:
            count = self._data.draw(st.integers(1, len(left)))
            together, left = left[:count], left[count:]
            found = self._inner.get_all(together)
            deliver(list(zip(together, found, strict=True)))
        done(None)


def _drawn(data: Any, fill: int) -> tuple[Cached, NDArray[Any], list[Index]]:
    """Any array of which some chunks are not stored, its elements, and its chunks."""
    rank = data.draw(st.integers(0, 3))
    shape = tuple(data.draw(st.integers(1, (30, 12, 7)[rank - 1])) for _ in range(rank))
    chunks = tuple(data.draw(st.integers(1, n + 1)) for n in shape)
    indices = list(np.ndindex(*(-(-n // c) for n, c in zip(shape, chunks, strict=True))))
    values = np.arange(1, 1 + int(np.prod(shape, dtype=int)), dtype="<i2").reshape(shape)
    objects = {}
    for index in indices:
        chunk = np.full(chunks, -1, "<i2")
        inside = [slice(i * c, (i + 1) * c) for i, c in zip(index, chunks, strict=True)]
        part = values[(*inside, ...)]
        chunk[(*map(slice, part.shape), ...)] = part
        if data.draw(st.integers(0, 4)):
            objects["/".join(["c", *map(str, index)])] = chunk.tobytes()
        else:
            part[...] = fill
    document = array_document(shape, chunks, fill_value=fill)
    cached = Cached(MemoryStore({"zarr.json": document, **objects}))
    cached.start(*indices).wait()
    return cached, values, indices


@given(data=st.data())
def test_in_any_order_and_some_at_a_time(data):
    order = data.draw(st.sampled_from("CF"))
    byteorder = data.draw(st.sampled_from(("little", "big")))
    cached, values, indices = _drawn(data, 7)
    try:
        missing = data.draw(st.sets(st.sampled_from(indices)))
        array = Scattered(cached.array, data, missing)
        origin = tuple(data.draw(st.integers(0, n - 1)) for n in values.shape)
        lengths = tuple(data.draw(st.integers(1, n + 2)) for n in values.shape)
        window = Window(cached.array.array.layout.read, origin, lengths)
        elements = Elements(array, window, FlatConfig(byteorder, order))
        # As if there were many, of which the cached ones are copied together.
        crossed = elements.window
        crossed.mean_piece = data.draw(st.sampled_from((1 / 64, crossed.mean_piece)))
        shown = np.full(lengths, 7, "<i2")
        inside = [slice(o, o + n) for o, n in zip(origin, lengths, strict=True)]
        part = values[(*inside, ...)]
        shown[(*map(slice, part.shape), ...)] = part
        expected = shown.reshape(-1, order=order)
        first = data.draw(st.integers(0, len(expected)))
        last = data.draw(st.integers(first, len(expected)))
        swapped = "<i2" if byteorder == "little" else ">i2"
        for _ in range(2):
            filled = np.zeros(last - first, elements.dtype)
            elements.fill(filled, first, last, lambda error: None)
            assert np.array_equal(filled.view(swapped), expected[first:last])
        complete = Elements(cached.array, window, FlatConfig(byteorder, order))
        assert np.array_equal(complete.get(first, last).view(swapped), expected[first:last])
        if missing & array.asked:
            with suppress(NotCached):
                assert elements.get(first, last) is None
    finally:
        cached.close()


@given(data=st.data())
def test_bytes_are_cut_from_chunks_that_come_in_any_order(data):
    """Those of chunks that are not stored, too, and parts that begin or end within an element."""
    cached, values, indices = _drawn(data, 259)
    try:
        array = Scattered(cached.array, data, data.draw(st.sets(st.sampled_from(indices))))
        window = Window.whole(cached.array.array.layout.read)
        view = FlatView(Elements(array, window, FlatConfig()))
        start = data.draw(st.integers(0, values.nbytes))
        size = data.draw(st.integers(0, values.nbytes))
        assert _read(view, start, size) == values.tobytes()[start : start + size]
    finally:
        cached.close()


def _chunk_view(cached: Cached, index: tuple[int, int]) -> FlatView:
    grid = cached.array.array.layout.read
    window = Window(grid, grid.origin(index), grid.chunk_shape(index))
    return FlatView(Elements(cached.array, window, FlatConfig()))


def _read(view: FlatView, offset: int, size: int) -> bytes | memoryview:
    answers: list[Any] = []
    ready = threading.Event()

    def answer(data: Any) -> None:
        answers.append(data)
        ready.set()

    view.read(offset, size, answer)
    assert ready.wait(20)
    return answers[0]


@pytest.fixture
def grid_of_chunks():
    """An array of 5 × 6 in chunks of 2 × 3, of which the first is not stored."""
    chunks = {
        f"c/{i}/{j}": np.arange(6, dtype="<i2").reshape(2, 3) + 100 * i + 10 * j
        for i, j in np.ndindex(3, 2)
    }
    objects = {key: chunk.tobytes() for key, chunk in chunks.items() if key != "c/0/0"}
    cached = Cached(MemoryStore({"zarr.json": array_document((5, 6), (2, 3)), **objects}))
    yield cached, chunks
    cached.close()


def test_most_of_one_chunk_is_not_copied(grid_of_chunks):
    cached, chunks = grid_of_chunks
    view = _chunk_view(cached, (1, 1))
    whole = chunks["c/1/1"].tobytes()
    missed = _read(view, 0, 8)
    assert missed == whole[:8]
    hit = view.read_now(7, 100)
    assert hit == whole[7:]
    held = cached.array.get((1, 1))
    for data in missed, hit, _read(view, 6, 100):
        assert np.shares_memory(np.frombuffer(data, np.uint8), held)
    assert memoryview(missed).readonly


def test_a_small_part_of_a_chunk_keeps_none_of_it_in_memory(grid_of_chunks):
    cached, chunks = grid_of_chunks
    part = _read(_chunk_view(cached, (1, 1)), 2, 5)
    assert part == chunks["c/1/1"].tobytes()[2:7]
    assert not np.shares_memory(np.frombuffer(part, np.uint8), cached.array.get((1, 1)))


def test_an_answer_is_not_what_is_written_to_the_array_later(grid_of_chunks):
    """What may change is copied."""
    cached, chunks = grid_of_chunks
    changing = chunks["c/1/1"].copy()

    class Changed(Scattered):
        def request(self, indices, deliver, done, **_):
            deliver([(indices[0], changing)])
            done(None)

    grid = cached.array.array.layout.read
    window = Window(grid, grid.origin((1, 1)), grid.chunk_shape((1, 1)))
    view = FlatView(Elements(Changed(cached.array, None), window, FlatConfig()))
    data = _read(view, 0, 100)
    changing[...] = 0
    assert data == chunks["c/1/1"].tobytes()
