"""Numbers of the nodes of ``chunks/``."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.fs.nodes.chunk_tree import ChunkTree

small_counts = st.lists(st.integers(0, 5), max_size=4).map(tuple)
huge_counts = st.lists(st.integers(1, 10**12), min_size=1, max_size=4).map(tuple)


def prefixes(counts):
    """Every node of a tree, level by level."""
    for depth in range(len(counts) + 1):
        yield from product(*map(range, counts[:depth]))


@given(small_counts)
def test_numbers_are_a_bijection(counts):
    tree = ChunkTree(counts)
    nodes = list(prefixes(counts or (1,)))
    assert sorted(map(tree.number, nodes)) == list(range(tree.nodes))
    assert [tree.prefix(tree.number(node)) for node in nodes] == nodes


@given(small_counts.filter(bool), st.integers(1, 3))
def test_numbers_stay_when_the_first_axis_grows(counts, more):
    tree = ChunkTree(counts)
    grown = ChunkTree((counts[0] + more, *counts[1:]))
    for node in prefixes(counts):
        assert grown.number(node) == tree.number(node)


@given(huge_counts, st.data())
def test_numbers_of_a_huge_tree_come_back(counts, data):
    tree = ChunkTree(counts)
    number = data.draw(st.integers(0, tree.nodes - 1))
    assert tree.number(tree.prefix(number)) == number
    prefix = tuple(data.draw(st.integers(0, count - 1)) for count in counts)
    prefix = prefix[: data.draw(st.integers(0, len(counts)))]
    assert tree.prefix(tree.number(prefix)) == prefix


@given(huge_counts)
def test_size_of_a_huge_tree(counts):
    depths = range(len(counts) + 1)
    assert ChunkTree(counts).nodes == sum(math.prod(counts[:depth]) for depth in depths)


def test_children_have_the_names_of_their_numbers():
    tree = ChunkTree((3, 12))
    assert tree.child((), "2") == (2,)
    assert tree.child((2,), "11") == (2, 11)


@given(small_counts)
def test_the_children_of_a_directory_come_in_order(counts):
    tree = ChunkTree(counts)
    for node in prefixes(tree.counts):
        if not tree.is_file(node):
            below = [(*node, i) for i in range(tree.counts[len(node)])]
            assert list(tree.children(node)) == [tree.number(child) for child in below]


@pytest.mark.parametrize("name", [
    "", "00", "01", "-1", "+1", " 1", "1 ", "1_0", "1.0", "0x1", "\uff11", "²", "\u0661", "3", "10",
    "9" * 19, "9" * 5000, "..", ".", "a", "0\0", "\udc80",
])  # fmt: skip
def test_no_other_names(name):
    assert ChunkTree((3, 12)).child((), name) is None


def test_a_scalar_has_one_file():
    tree = ChunkTree(())
    assert tree.child((), "0") == (0,)
    assert tree.child((), "1") is None
    assert tree.is_file((0,))
    assert not tree.is_file(())
    assert tree.chunk((0,)) == ()


def test_an_empty_axis_has_no_children():
    tree = ChunkTree((2, 0, 3))
    assert tree.nodes == 3
    assert not tree.children((1,))
    assert tree.child((1,), "0") is None
