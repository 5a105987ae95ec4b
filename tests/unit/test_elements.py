"""Elements are the same however their chunks come: at once, some at a time, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.arrays import Cached
from tests.fs.documents import array_document
from tests.fs.memory_store import MemoryStore
from zarrfs.views.elements import Elements, FlatConfig
from zarrfs.views.window import Window

pytestmark = pytest.mark.timeout(120)


class Scattered:
    """An array whose chunks are delivered in the order and the groups that ``draw`` says."""

    def __init__(self, inner: Any, data: st.DataObject) -> None:
        self._inner = inner
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def request(self, indices, deliver, done, **_):
        left = self._data.draw(st.permutations(indices))
        while left:
            count = self._data.draw(st.integers(1, len(left)))
            together, left = left[:count], left[count:]
            found = self._inner.get_all(together)
            deliver(list(zip(together, found, strict=True)))
        done(None)


@given(data=st.data())
def test_in_any_order_and_some_at_a_time(data):
    rank = data.draw(st.integers(0, 3))
    shape = tuple(data.draw(st.integers(1, (30, 12, 7)[rank - 1])) for _ in range(rank))
    chunks = tuple(data.draw(st.integers(1, n + 1)) for n in shape)
    counts = [-(-n // c) for n, c in zip(shape, chunks, strict=True)]
    order = data.draw(st.sampled_from("CF"))
    byteorder = data.draw(st.sampled_from(("little", "big")))
    values = np.arange(int(np.prod(shape, dtype=int)), dtype="<i2").reshape(shape)
    objects = {}
    for index in np.ndindex(*counts):
        chunk = np.full(chunks, 7, "<i2")
        inside = [slice(i * c, (i + 1) * c) for i, c in zip(index, chunks, strict=True)]
        part = values[(*inside, ...)]
        chunk[(*map(slice, part.shape), ...)] = part
        if data.draw(st.integers(0, 4)):
            objects["/".join(["c", *map(str, index)])] = chunk.tobytes()
        else:
            part[...] = 7
    cached = Cached(MemoryStore({"zarr.json": array_document(shape, chunks), **objects}))
    try:
        cached.start(*np.ndindex(*counts)).wait()
        array = Scattered(cached.array, data)
        origin = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
        lengths = tuple(data.draw(st.integers(1, n + 2)) for n in shape)
        window = Window(cached.array.array.layout.read, origin, lengths)
        elements = Elements(array, window, FlatConfig(byteorder, order))
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
        assert np.array_equal(elements.get(first, last).view(swapped), expected[first:last])
    finally:
        cached.close()
