"""Where small reads lie in rows of chunks, and chunks that lie together in a file."""

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from zarrfs.format.chunk_grid import ChunkGrid, RegularAxis, RunsAxis
from zarrfs.views.elements import rows
from zarrfs.views.elements.contiguous import ContiguousChunks
from zarrfs.views.elements.rows import Rows
from zarrfs.views.elements.window import Window, boxes


@st.composite
def arrays(draw):
    """Elements, their grid, and where in their bytes a read begins and ends."""
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple))
    chunks = tuple(draw(st.integers(1, 9)) for _ in shape)
    dtype = np.dtype(draw(st.sampled_from(["u1", "<u2", "V3", "<f8"])))
    size = math.prod(shape) * dtype.itemsize
    elements = np.random.default_rng(0).bytes(size)
    start = draw(st.integers(0, size - 1))
    stop = draw(st.integers(start + 1, size))
    return np.frombuffer(elements, dtype).reshape(shape), chunks, start, stop


def chunk_bytes(array, chunks, index):
    """As a chunk is in memory, the overhang full of something."""
    chunk = np.full((*chunks, array.dtype.itemsize), 0xEE, "u1").view(array.dtype)[..., 0]
    where = tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, chunks, strict=True))
    part = array[where]
    chunk[tuple(map(slice, part.shape))] = part
    return memoryview(chunk.tobytes())


def read(rows, data_of, start, stop):
    """The bytes of the parts; None if they are too many."""
    cuts = rows.cuts(start, stop)
    if cuts is None:
        return None
    indices = list(cuts.chunks)
    assert list(cuts.chunks.values()) == list(range(len(indices)))
    data = data_of(indices)
    return b"".join(data[number][first:last] for number, first, last in cuts.parts)


@given(arrays())
@example((np.arange(rows._MOST_PIECES + 1, dtype="u2"), (1,), 0, 2 * rows._MOST_PIECES + 2))
@example((np.arange(rows._MOST_PIECES + 1, dtype="u2"), (1,), 1, 2 * rows._MOST_PIECES + 1))
# Chunks span the last axes, and some of these have one element.
@example((np.arange(210, dtype="u2").reshape(5, 7, 3, 2), (2, 2, 3, 2), 5, 405))
@example((np.arange(210, dtype="u2").reshape(5, 7, 3, 2), (2, 7, 3, 2), 5, 405))
@example((np.arange(210, dtype="u2").reshape(5, 7, 3, 2), (5, 7, 3, 2), 5, 405))
@example((np.arange(210, dtype="u2").reshape(5, 7, 6, 1), (2, 2, 3, 1), 5, 405))
@example((np.arange(210, dtype="u2").reshape(5, 7, 6, 1), (2, 2, 3, 2), 5, 405))
def test_rows_are_the_bytes_of_the_file(case):
    array, chunks, start, stop = case

    def data_of(indices):
        return [chunk_bytes(array, chunks, index) for index in indices]

    window = Window.whole(ChunkGrid.regular(array.shape, chunks))
    assert Rows.fits(window)
    data = read(Rows(window, array.dtype.itemsize, data_of), data_of, start, stop)
    axis = array.ndim - 1
    while axis and chunks[axis] == array.shape[axis]:
        axis -= 1
    # What lies in one piece, both in a chunk and in the file.
    piece = math.prod(map(min, chunks[axis:], array.shape[axis:])) * array.dtype.itemsize
    # So many pieces are faster as boxes.
    too_many = (stop - start) // piece > rows._MOST_PIECES
    assert data == (None if too_many else array.tobytes()[start:stop])


@given(arrays())
def test_rows_of_chunks_are_copied_where_they_belong_or_not_at_all(case):
    array, chunks, start, stop = case
    item = array.dtype.itemsize

    def data_of(indices):
        return [chunk_bytes(array, chunks, index) for index in indices]

    window = Window.whole(ChunkGrid.regular(array.shape, chunks))
    rows = Rows(window, item, data_of)
    for box in boxes(window.shape, start // item, -(-stop // item)):
        known = array[tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))]
        target = np.zeros_like(known, subok=False)
        told = window.chunk_rows(box, known), window.chunk_rows(box, target)
        for expected, part in zip(*told, strict=True):
            if rows.copy(part):
                assert part.target.tobytes() == expected.target.tobytes()
                continue
            assert not any(part.target.tobytes())
            whole = array.shape[-1] % chunks[-1] == 0 and box.shape[-1] == array.shape[-1]
            one_plane = array.ndim > 1 and math.prod(box.shape[:-2]) == 1
            assert not (whole and one_plane and len(part.runs) > 1)


@st.composite
def windows(draw):
    axes = [
        draw(
            st.one_of(
                st.builds(RegularAxis, st.integers(1, 7), st.integers(1, 7)),
                st.lists(st.integers(1, 4), min_size=1, max_size=3).map(
                    lambda lengths: RunsAxis(sum(lengths), [(n, 1) for n in lengths])
                ),
            )
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return Window.whole(ChunkGrid(axes))


@given(windows(), st.integers(1, 3), st.data())
def test_a_chunk_that_lies_together(window, item, data):
    found = ContiguousChunks.plan(window, item)
    grid = window.grid
    # Of each element, the number of its chunk.
    of_axis = [[axis.chunk_of(i) for i in range(axis.extent)] for axis in grid.axes]
    chunk_of = np.ravel_multi_index(np.meshgrid(*of_axis, indexing="ij"), grid.counts).reshape(-1)
    borders = np.flatnonzero(np.diff(chunk_of)) + 1
    runs = np.split(np.arange(chunk_of.size), borders)
    together = len(runs) == grid.chunks
    if found is None:
        # A longest chunk may be what stands in the way of shorter ones.
        assert not together or grid.regular_shape is None or 1 in grid.shape
        return
    assert together
    element = data.draw(st.integers(0, chunk_of.size - 1))
    (run,) = [run for run in runs if element in run]
    at = element * item + data.draw(st.integers(0, item - 1))
    assert found.span(at) == (int(run[0]) * item, (int(run[-1]) + 1) * item)
