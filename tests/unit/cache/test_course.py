"""Boxes are decoded ahead of a reader, and few of them in vain."""

from itertools import product

import pytest

from zarrfs.views.tiles.course import Course

COUNTS = (8, 8, 8)
MOST = 4


def _follow(course, indices):
    """How many boxes came as announced, and how many were announced in vain."""
    said, found = set(), 0
    for index in indices:
        found += index in said
        said.discard(index)
        course.follow(index)
        after = list(course.ahead(MOST))
        assert len(after) <= MOST
        said.update(after)
        said.discard(index)
    return found, len(said)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_planes(axis):
    ranges = [range(n) for n in COUNTS]
    ranges[axis] = range(3, 4)
    found, vain = _follow(Course(COUNTS), product(*ranges))
    assert found >= 58
    assert not vain


def test_a_whole_array():
    found, vain = _follow(Course(COUNTS), product(*map(range, COUNTS)))
    assert found >= 500
    assert not vain


@pytest.mark.parametrize("box", [(2, 2, 2), (3, 3, 3), (1, 4, 5), (5, 1, 1), (1, 2, 6), (6, 6, 6)])
def test_a_box_inside(box):
    start = (1, 2, 1)
    indices = list(product(*(range(s, s + n) for s, n in zip(start, box, strict=True))))
    _, vain = _follow(Course(COUNTS), indices)
    assert vain <= len(indices) / 10


def test_several_boxes():
    course = Course(COUNTS)
    for k in (5, 2, 2):
        found, vain = _follow(course, product(range(8), range(8), (k,)))
        assert found >= 58
        assert not vain


def test_other_orders():
    indices = list(product(range(8), range(8)))
    course = Course((8, 8))
    assert _follow(course, indices[::-1]) == (0, 0)
    _, vain = _follow(course, [(i, j) for j, i in indices])
    assert not vain
    assert _follow(course, [(1, 1), (5, 3), (1, 1), (1, 1), (0, 7), (2, 2)]) == (0, 0)


def test_one_axis_and_none():
    assert _follow(Course((5,)), [(i,) for i in range(5)])[0] >= 2
    assert _follow(Course(()), [(), ()]) == (0, 0)
