"""Inode numbers: unique, found again, and the same in every mount."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from zarrfs.fs.nodes import inodes
from zarrfs.fs.nodes.inodes import ROOT_INODE, InodeSpace

SMALL = 1 << 40
LARGE = 1 << 56

sizes = st.integers(1, 1000) | st.integers(1, SMALL) | st.integers(SMALL + 1, LARGE)
nodes = st.dictionaries(st.text(min_size=1, max_size=8), sizes, max_size=30)


@given(nodes, st.data())
def test_every_inode_leads_back(nodes, data):
    space = InodeSpace()
    space.claim("", 40)
    bases = {path: space.claim(path, size) for path, size in nodes.items()}
    for path, base in bases.items():
        assert base is not None
        assert base > ROOT_INODE
        assert base + nodes[path] <= 1 << 64
        for local in (0, nodes[path] - 1, data.draw(st.integers(0, nodes[path] - 1))):
            assert space.find(base + local) == (path, local)
    assert space.find(ROOT_INODE) == ("", 0)
    assert space.find(ROOT_INODE + 39) == ("", 39)
    ranges = sorted((base, base + nodes[path]) for path, base in bases.items())
    for (_, stop), (start, _) in pairwise([(ROOT_INODE, ROOT_INODE + 40), *ranges]):
        assert stop <= start


def test_the_same_in_every_mount_whatever_the_order():
    paths = [f"group/array{i}" for i in range(100)]
    forward, backward = InodeSpace(), InodeSpace()
    first = {path: forward.claim(path, 50) for path in paths}
    second = {path: backward.claim(path, 50) for path in reversed(paths)}
    assert first == second


def test_colliding_paths_get_different_inodes(monkeypatch):
    monkeypatch.setattr(inodes, "_hash", lambda _path: 0)
    space = InodeSpace()
    space.claim("", 40)
    bases = [space.claim(str(i), SMALL) for i in range(20)]
    assert len({None, ROOT_INODE, *bases}) == 22
    assert [space.find(base + SMALL - 1) for base in bases] == [
        (str(i), SMALL - 1) for i in range(20)
    ]


def test_large_nodes_run_out():
    space = InodeSpace()
    bases = [space.claim(f"a{i}", LARGE) for i in range(64)]
    assert None not in bases
    assert len(set(bases)) == 64
    assert space.claim("one more", LARGE) is None
    assert space.claim("a small one", SMALL) is not None


def test_names_that_are_not_utf8():
    space = InodeSpace()
    assert space.claim("a\udcff", 40) != space.claim("a\udcfe", 40)
