"""How a file is divided into slabs."""

import pytest

from zarrfs.format.chunk_grid import ChunkGrid
from zarrfs.views.elements.window import Window
from zarrfs.views.slabs.slab_grid import SlabGrid


@pytest.mark.parametrize(
    ("most", "stretch", "cut", "thick"),
    [
        (250, 0, 0, 2),
        # A plane is 100 elements, a row of it 10.
        (90, 0, 1, 5),
        (90, 10, 0, 1),
        (80, 10, 1, 5),
        (40, 0, 1, 4),
        (40, 10, 1, 5),
        (9, 0, 2, 5),
        (9, 1, 1, 1),
        (1, 0, 2, 1),
    ],
)
def test_pieces_are_few_and_of_similar_size(most, stretch, cut, thick):
    window = Window.whole(ChunkGrid.regular((20, 10, 10), (20, 2, 2)))
    row = SlabGrid.plan_row(window)
    assert row is not None
    pieces = row.in_pieces(most, stretch)
    behind = (100, 10, 1)[cut]
    assert (pieces.cut, pieces.piece) == (cut, thick * behind)
    assert pieces.piece <= most + stretch
    # They follow each other without a gap, and none reaches over the end of its plane.
    position = 0
    while position < window.elements:
        first, last = pieces.slab_at(position)
        assert first == position < last <= first + pieces.piece
        assert pieces.slab_at(last - 1) == (first, last)
        position = last


@pytest.mark.parametrize(
    ("members", "most", "rows"),
    [
        # A row of chunks is 200 elements; two of them are a slab.
        ((1, 5, 5), 10_000, 2),
        ((2, 1, 1), 10_000, 2),
        ((3, 1, 1), 600, 3),
        ((3, 1, 1), 599, 2),
        ((10, 5, 5), 2000, 10),
        ((10, 5, 5), 1999, 2),
    ],
)
def test_slabs_of_whole_shards_are_made_if_they_fit(members, most, rows):
    window = Window.whole(ChunkGrid.regular((20, 10, 10), (2, 2, 2)))
    grid = SlabGrid(window, 0, 2)
    assert grid.row == 200
    assert grid.of_whole_shards(members, most).rows == rows


def test_slabs_of_several_shards_end_where_a_shard_ends():
    window = Window.whole(ChunkGrid.regular((20, 10, 10), (2, 2, 2)))
    assert SlabGrid(window, 0, 7).of_whole_shards((3, 1, 1), 10_000).rows == 6


def test_slabs_within_one_index_of_an_axis_have_no_whole_shards():
    window = Window.whole(ChunkGrid.regular((20, 10, 10), (1, 2, 2)))
    assert SlabGrid(window, 1, 1).of_whole_shards((4, 5, 5), 10_000).rows == 1
