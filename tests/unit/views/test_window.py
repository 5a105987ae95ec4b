"""From file ranges to chunks: every element once, from where it belongs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.array.block import ranges
from zarrfs.format.chunk_grid import ChunkGrid, RegularAxis, RunsAxis
from zarrfs.views.elements.window import Box, Window, boxes

shapes = st.lists(st.integers(1, 6), min_size=0, max_size=4).map(tuple)


@st.composite
def file_ranges(draw):
    shape = draw(shapes)
    start = draw(st.integers(0, math.prod(shape)))
    return shape, start, draw(st.integers(start, math.prod(shape)))


@given(file_ranges())
def test_boxes_are_the_range_in_order(case):
    shape, start, stop = case
    numbers = np.arange(math.prod(shape)).reshape(shape)
    found = []
    for box in boxes(shape, start, stop):
        part = numbers[tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))]
        assert part.shape == box.shape
        assert part.reshape(-1)[0] == box.position
        assert part.size == box.elements
        found.extend(part.reshape(-1).tolist())
    assert found == list(range(start, stop))


def test_a_scalar_is_one_box():
    assert list(boxes((), 0, 1)) == [Box((), (), 0)]


@pytest.mark.parametrize("position", [0, 5, 12])
def test_an_empty_range_has_no_boxes(position):
    assert list(boxes((3, 4), position, position)) == []


def axes():
    regular = st.builds(RegularAxis, st.integers(1, 19), st.integers(1, 5))
    lengths = st.lists(st.integers(1, 4), min_size=1, max_size=4)
    uneven = lengths.flatmap(
        lambda lengths: st.integers(1, sum(lengths)).map(
            lambda extent: RunsAxis(extent, [(length, 1) for length in lengths])
        )
    )
    return regular | uneven


@st.composite
def windows(draw):
    """A window anywhere in the grid, which may reach beyond the array."""
    grid = ChunkGrid(draw(st.lists(axes(), min_size=0, max_size=3)))
    origin = tuple(draw(st.integers(0, extent - 1)) for extent in grid.shape)
    shape = tuple(draw(st.integers(1, extent + 2)) for extent in grid.shape)
    start = draw(st.integers(0, math.prod(shape)))
    return Window(grid, origin, shape), start, draw(st.integers(start, math.prod(shape)))


@given(windows())
def test_copies_make_up_what_lies_inside_the_array(case):
    window, start, stop = case
    shape = window.grid.shape
    array = np.arange(math.prod(shape)).reshape(shape)
    # Twice as wide, so that every window lies inside; -1 is outside the array.
    padded = np.full(tuple(2 * n + 2 for n in shape), -1)
    padded[tuple(slice(0, n) for n in shape)] = array
    where = tuple(slice(o, o + n) for o, n in zip(window.origin, window.shape, strict=True))
    expected = padded[where].reshape(-1)[start:stop]

    result = np.full(stop - start, -1)
    for box in boxes(window.shape, start, stop):
        first = box.position - start
        target = result[first : first + box.elements].reshape(box.shape)
        copied = np.zeros(box.shape, int)
        for copy in window.copies(box):
            assert window.grid.contains(copy.chunk)
            origin = window.grid.origin(copy.chunk)
            # What a chunk holds: the array's elements, and garbage in its overhang.
            chunk = np.full(window.grid.chunk_shape(copy.chunk), -2)
            inside = tuple(map(slice, window.grid.valid_shape(copy.chunk)))
            chunk[inside] = array[
                tuple(slice(o, o + s.stop) for o, s in zip(origin, inside, strict=True))
            ]
            target[copy.target] = chunk[copy.source]
            copied[copy.target] += 1
        assert copied.max(initial=0) <= 1
        assert (copied == 0).any() == window.overhangs(box)
    assert result.tolist() == expected.tolist()


@given(axes(), st.data())
def test_ranges_are_the_runs_in_compact_form(axis, data):
    origin = data.draw(st.integers(0, axis.extent - 1))
    window = Window(ChunkGrid([axis]), (origin,), (axis.extent,))
    span = data.draw(st.integers(0, axis.extent)), data.draw(st.integers(0, axis.extent))
    assert window.ranges_along(0, *span) == ranges(window.runs_along(0, *span))


@given(windows())
def test_chunks_are_counted_as_they_are_listed(case):
    window, start, stop = case
    for box in boxes(window.shape, start, stop):
        assert window.count_chunks(box) == len(list(window.copies(box)))


@given(windows())
def test_rows_of_chunks_fill_a_box(case):
    window, start, stop = case
    for box in boxes(window.shape, start, stop):
        expected, filled = np.zeros(box.shape, int), np.zeros(box.shape, int)
        numbers = {}
        for copy in window.copies(box):
            numbers[copy.chunk] = len(numbers) + 1
            expected[copy.target] = numbers[copy.chunk]
        for row in window.chunk_rows(box, filled):
            first = row.runs[0].target.start if row.runs else 0
            for number, chunk in enumerate(row.indices):
                place = row.target
                if row.runs:
                    along = row.runs[number].target
                    place = place[..., along.start - first : along.stop - first]
                place[...] += numbers[chunk]
        assert np.array_equal(filled, expected)


@pytest.mark.parametrize(
    ("origin", "shape", "chunk"),
    [
        ((2, 3), (2, 3), (1, 1)),
        ((0, 0), (2, 3), (0, 0)),
        ((4, 3), (2, 3), None),  # overhangs
        ((2, 3), (1, 3), None),
        ((2, 2), (2, 3), None),
        ((2, 0), (2, 6), None),
        ((2, 3), (0, 3), None),
    ],
)
def test_the_only_chunk_of_a_window(origin, shape, chunk):
    assert Window(ChunkGrid.regular((5, 6), (2, 3)), origin, shape).only_chunk == chunk


@pytest.mark.parametrize(
    ("extents", "origin", "shape", "chunk", "piece"),
    [
        ((8, 100), (0, 0), (8, 100), (2, 10), 10),
        # A chunk that spans the last axes has all of their elements in one piece.
        ((8, 30, 3), (0, 0, 0), (8, 30, 3), (2, 10, 3), 30),
        ((8, 3), (0, 0), (8, 3), (8, 5), 24),
        # The window crosses the border of a chunk that is as long as itself.
        ((8, 15), (0, 5), (8, 10), (8, 10), 5),
        # One of the two chunks has a single element of each row.
        ((8, 101), (0, 0), (8, 101), (8, 100), 50),
        # The window lies beyond the array.
        ((8, 15), (0, 20), (8, 5), (8, 10), 1),
        ((), (), (), (), 1),
    ],
)
def test_a_piece_of_the_file_is_in_one_chunk(extents, origin, shape, chunk, piece):
    assert Window(ChunkGrid.regular(extents, chunk), origin, shape).mean_piece == piece
