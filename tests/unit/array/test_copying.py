"""Copies between memory layouts: the same elements as NumPy's own, whichever way they are cut."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.traced import traced
from zarrfs.format.copying import contiguous, copy_elements, in_sequence


@given(
    shape=st.tuples(*[st.integers(0, 5)] * 2, st.sampled_from([0, 1, 2, 7, 33, 200])),
    dtype=st.sampled_from(["u1", "<u2", ">u2", "<f8", "V3", "<c16"]),
    order=st.sampled_from([(0, 1, 2), (1, 0, 2), (2, 1, 0)]),
    swapped=st.booleans(),
    filled=st.booleans(),
)
@example(shape=(3, 2, 7), dtype="<u2", order=(0, 1, 2), swapped=True, filled=False)
@example(shape=(3, 2, 7), dtype="<u2", order=(0, 1, 2), swapped=False, filled=True)
def test_chunks_are_copied_as_numpy_does(shape, dtype, order, swapped, filled):
    """Whatever the memory on both sides looks like, and in which byte order."""
    whole = np.random.default_rng(0).bytes(math.prod(shape) * np.dtype(dtype).itemsize)
    chunk = np.frombuffer(whole, dtype).reshape(shape).transpose(order)
    if filled and chunk.size:
        chunk = np.broadcast_to(chunk.flat[0], chunk.shape)
    other = chunk.dtype.newbyteorder() if swapped else chunk.dtype
    room = np.zeros([length + 2 for length in chunk.shape], other)
    inside = tuple(slice(1, 1 + length) for length in chunk.shape)
    expected = room.copy()
    expected[inside] = chunk
    copy_elements(chunk, room[inside])
    assert room.tobytes() == expected.tobytes()


# Rows of few elements; lengths that are powers of two; others. What is left over is no whole tile.
@pytest.mark.parametrize(
    "shape", [(50, 41, 3), (3, 2, 1500, 2), (4, 64, 64, 72), (512, 40), (19, 40, 61), (1, 9000, 4)]
)
def test_transposed_elements_arrive_at_their_places(shape):
    for dtype in ("u1", "<u2", ">f4", "<f8", "<c16"):
        check_transposed(shape, dtype)


def check_transposed(shape, dtype):
    count = math.prod(shape)
    elements = np.arange(count).astype(dtype).reshape(shape)
    rank = len(shape)
    for order in (tuple(range(rank))[::-1], (*range(rank - 2), rank - 1, rank - 2)):
        stored = np.ascontiguousarray(elements.transpose(order))
        whole = np.zeros([2 * length for length in shape], dtype)
        part = whole[tuple(map(slice, shape))]
        copy_elements(stored.transpose(np.argsort(order)), part)
        assert np.array_equal(part, elements)
        part[...] = 0
        assert not whole.any(), "nothing beside the target is written"
        found = contiguous(elements.transpose(order), elements.dtype.newbyteorder())
        assert found.flags.c_contiguous
        assert np.array_equal(found, stored)


def test_long_copies_between_orders_are_cut():
    """Otherwise the tests above show nothing."""
    assigned: list[int] = []

    class Target(np.ndarray):
        def __setitem__(self, where, value):
            assigned.append(value.size)
            super().__setitem__(where, value)

    for shape, pieces in (
        ((50, 100, 3), 3),
        ((256, 64, 40), 3),
        ((50, 100, 7), 1),  # rows are long enough, and their elements lie in many sets
        ((10, 10, 3), 1),  # too few elements
    ):
        source = np.zeros(shape[::-1], np.uint16).transpose()
        assigned.clear()
        copy_elements(source, np.zeros(shape, np.uint16).view(Target))
        assert len(assigned) == pieces, shape
        assert sum(assigned) == math.prod(shape)


def test_elements_in_order_are_not_copied():
    elements = np.arange(6).reshape(2, 3)
    assert contiguous(elements, elements.dtype) is elements
    assert contiguous(np.array(3.0), np.dtype(">f8")) == 3.0


@given(data=st.data())
def test_elements_in_sequence_are_those_of_c_order(data):
    shape = data.draw(st.lists(st.integers(1, 9), max_size=4).map(tuple))
    dtype = np.dtype(data.draw(st.sampled_from(["u1", "<u2", ">f4", "V3", "<c16"])))
    count = math.prod(shape)
    whole = np.random.default_rng(0).bytes(3 * count * dtype.itemsize)
    order = data.draw(st.permutations(range(len(shape))))
    stored = np.frombuffer(whole, dtype)[:: data.draw(st.integers(1, 3))][:count]
    stored = stored.reshape([shape[axis] for axis in order])
    elements = stored.transpose(np.argsort(order))
    if data.draw(st.booleans()):
        elements = np.broadcast_to(elements.reshape(-1)[:1].reshape([1] * len(shape)), shape)
    first = data.draw(st.integers(0, count - 1))
    last = data.draw(st.integers(first + 1, count))
    found = in_sequence(elements, first, last)
    assert found.flags.c_contiguous
    assert found.dtype == dtype
    assert found.shape == (last - first,)
    assert found.tobytes() == elements.tobytes()[first * dtype.itemsize : last * dtype.itemsize]


def test_few_elements_in_sequence_are_not_copied_with_all_others():
    """Two on either side of a border between the longest rows."""
    length = 1 << 21
    elements = np.arange(2 * length, dtype="u1").reshape(length, 2).transpose()
    with traced() as most:
        found = in_sequence(elements, length - 1, length + 1)
    assert found.tobytes() == bytes([254, 1])
    assert most() < length // 100
