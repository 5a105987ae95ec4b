"""Any row, cut into any stripes and pieces: what is written stripe by stripe is read in pieces."""

import random
from itertools import pairwise, product

import numpy as np
import pytest

from zarrfs.views.slabs import stripe_grid
from zarrfs.views.slabs.stripe_grid import StripeGrid


def borders(choose: random.Random, length: int) -> list[int]:
    inside = choose.sample(range(1, length), choose.randrange(min(4, length))) if length > 1 else []
    return [0, *sorted(inside), length]


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_read_from_what_stripes_wrote(seed, monkeypatch):
    choose = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(stripe_grid, "_COMPARED", 3)
    shape = tuple(choose.randrange(1, 9) for _ in range(choose.randrange(1, 5)))
    row = np.arange(np.prod(shape)).reshape(shape)
    cut = choose.randrange(len(shape))
    thick = choose.randrange(1, shape[cut] + 1)
    spans = [list(pairwise(borders(choose, length))) for length in shape]
    if seed % 3 == 0:
        # As most rows have it: stripes of one length along each axis, but for the last.
        lengths = [choose.randrange(1, length + 1) for length in shape]
        spans = [
            [(first, min(first + n, length)) for first in range(0, length, n)]
            for n, length in zip(lengths, shape, strict=True)
        ]
    stripes = list(product(*spans))
    bounds = np.array(stripes, np.int64)
    grid = StripeGrid(shape, cut, thick, bounds[..., 0], bounds[..., 1])

    file = np.full(row.size, -1)
    for number, stripe in enumerate(stripes):
        data = row[tuple(slice(*span) for span in stripe)].reshape(-1)
        for parts in grid.parts(number):
            sizes, places = parts.joined
            assert sizes.sum() == parts.sizes.sum()
            for size, place in zip(sizes.tolist(), places.tolist(), strict=True):
                assert (file[place : place + size] == -1).all()
                file[place : place + size], data = data[:size], data[size:]
        assert not data.size
    assert (file >= 0).all()

    position = 0
    for outer in np.ndindex(shape[:cut]):
        for first in range(0, shape[cut], thick):
            begin = (*outer, first, *(0 for _ in shape[cut + 1 :]))
            box = (*(1 for _ in outer), min(thick, shape[cut] - first), *shape[cut + 1 :])
            where = tuple(slice(b, b + n) for b, n in zip(begin, box, strict=True))
            expected = row[where]
            piece = np.full(box, -1)
            crossed, strips = grid.crossed(begin, box)
            assert crossed == [
                number
                for number, stripe in enumerate(stripes)
                if all(
                    b < h and low < b + n for b, n, (low, h) in zip(begin, box, stripe, strict=True)
                )
            ]
            place = position
            for low, each, axis, number in strips:
                start = list(low)
                for _ in range(number):
                    part = piece[tuple(slice(s, s + n) for s, n in zip(start, each, strict=True))]
                    part[...] = file[place : place + part.size].reshape(each)
                    place += part.size
                    start[axis] += each[axis]
            assert (piece == expected).all()
            position += expected.size
            assert place == position


def test_neighbours_of_one_shape_are_read_together():
    low = np.array([[0, 0], [0, 5], [0, 10], [3, 0], [3, 5], [3, 10]], np.int64)
    high = np.add(low, (3, 5))
    high[[2, 5], 1] = 12
    crossed, strips = StripeGrid((6, 12), 0, 6, low, high).crossed((0, 0), (6, 12))
    assert crossed == [0, 1, 2, 3, 4, 5]
    assert strips == [
        ((0, 0), (3, 5), 1, 2),
        ((0, 10), (3, 2), 0, 1),
        ((3, 0), (3, 5), 1, 2),
        ((3, 10), (3, 2), 0, 1),
    ]
