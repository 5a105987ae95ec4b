"""Any row, cut into any stripes and pieces: what is written stripe by stripe is read in pieces."""

import random
from itertools import pairwise, product

import numpy as np
import pytest

from zarrfs.array.block import Block, Run
from zarrfs.views.slabs.stripe_grid import StripeGrid


def borders(choose: random.Random, length: int) -> list[int]:
    inside = choose.sample(range(1, length), choose.randrange(min(4, length))) if length > 1 else []
    return [0, *sorted(inside), length]


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_read_from_what_stripes_wrote(seed):
    choose = random.Random(seed)
    shape = tuple(choose.randrange(1, 9) for _ in range(choose.randrange(1, 5)))
    row = np.arange(np.prod(shape)).reshape(shape)
    cut = choose.randrange(len(shape))
    thick = choose.randrange(1, shape[cut] + 1)
    stripes = list(product(*(pairwise(borders(choose, length)) for length in shape)))
    blocks = [
        Block(tuple([Run(0, slice(0), slice(*span))] for span in stripe), row, row.dtype)
        for stripe in stripes
    ]
    grid = StripeGrid(len(shape), blocks)
    parts = [row[tuple(slice(*span) for span in stripe)].ravel() for stripe in stripes]
    file = np.concatenate(parts)
    sizes = [part.size for part in parts]
    assert grid.begins.tolist() == [sum(sizes[:number]) for number in range(len(sizes))]

    for outer in np.ndindex(shape[:cut]):
        for first in range(0, shape[cut], thick):
            begin = (*outer, first, *(0 for _ in shape[cut + 1 :]))
            box = (*(1 for _ in outer), min(thick, shape[cut] - first), *shape[cut + 1 :])
            piece = np.full(box, -1)
            for number, place, where in grid.parts(begin, box):
                assert 0 <= place - grid.begins[number] < sizes[number]
                part = piece[where]
                assert (part == -1).all()
                part[...] = file[place : place + part.size].reshape(part.shape)
            where = tuple(slice(b, b + n) for b, n in zip(begin, box, strict=True))
            assert (piece == row[where]).all()


def test_a_row_beyond_the_array_has_no_stripes():
    assert list(StripeGrid(2, []).parts((0, 0), (3, 4))) == []
