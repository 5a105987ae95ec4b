"""Numbers of the nodes of ``chunks/``."""

from itertools import product

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
