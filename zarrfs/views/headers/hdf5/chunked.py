"""``array.chunked.h5``: a dataset whose chunks are the decoded chunks of the array.

The index of the chunks is a B-tree of version 1, which every HDF5 library since 1.8 reads, and
readers in Python and JavaScript, too. Its nodes are computed when they are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zarrfs.format.chunk_grid import Shape
from zarrfs.views.elements.elements import FlatConfig
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, GroupForm, Inexpressible, Placed, Plan, check_size
from zarrfs.views.headers.hdf5.messages import MARKS, UNDEFINED
from zarrfs.views.headers.hdf5.single import h5, make_single
from zarrfs.views.tiles.computed import Computed, Numbers, Rows, Table
from zarrfs.views.tiles.tiling import PAGE, Tiling

# Children of a node: twice the rank that a superblock of version 0 implies.
_CHILDREN = 64
_LARGEST_CHUNK = 2**32 - 1
# The kernel reads so far ahead of a program that walks the tree, on a mount of root's. A chunk
# there would be decoded for nobody.
_AFTER_TREE = 1 << 20


def chunked_h5(array: Described) -> Plan:
    """Numbers, complex numbers and booleans in a regular grid, in C order and little-endian."""
    h5(array)
    if array.layout != FlatConfig():
        raise Inexpressible("a chunked HDF5 file is little-endian, in C order")
    if array.chunks is None or not array.axes or not array.count:
        raise Inexpressible("HDF5 takes chunks of one shape, and at least one")
    if math.prod(array.chunks) * array.data_type.item_size > _LARGEST_CHUNK:
        raise Inexpressible("HDF5 takes chunks of less than 4 GiB")
    # Twice, for the tree: it has fewer bytes than the chunks, which take a page each.
    check_size(2 * Tiling(array.shape, array.chunks, array.data_type.item_size, 0).size)
    return partial(_form, array, array.chunks)


def _form(array: Described, chunks: Shape) -> Form:
    item = array.data_type.item_size
    chunk_count = math.prod(-(-n // c) for n, c in zip(array.shape, chunks, strict=True))
    levels = _levels(chunk_count)
    node = _node_type(len(chunks)).itemsize
    tree = sum(levels) * node
    room = tree + -tree % PAGE + _AFTER_TREE
    # The root is the last node.
    size = Tiling(array.shape, chunks, item, 0).size
    made = make_single(array, chunks=chunks, root=tree - node, span=room + size)
    (start,) = made.offsets.values()
    tiling = Tiling(array.shape, chunks, item, start + room)
    tables = [Table.of_bytes(0, made.header), *_Tree(tiling, start, levels).tables()]
    boxed = GroupForm(Computed(tables), [Placed("", tiling)], made.size, writable=True, marks=MARKS)
    return Form(b"", array.layout, boxed=boxed)


def _levels(children: int) -> list[int]:
    """Nodes of each level of a tree of so many chunks, the leaves first."""
    found: list[int] = []
    while not found or children > 1:
        children = -(-children // _CHILDREN)
        found.append(children)
    return found


def _node_type(rank: int) -> np.dtype[Any]:
    key = [("size", "<u4"), ("mask", "<u4"), ("offset", "<u8", (rank + 1,))]
    child = [("key", key), ("address", "<u8")]
    return np.dtype([
        ("head", "S4"), ("type", "u1"), ("level", "u1"), ("used", "<u2"), ("left", "<u8"),
        ("right", "<u8"), ("children", child, (_CHILDREN,)), ("last", key),
    ])  # fmt: skip


class _Tree(NamedTuple):
    """
    start : of the first leaf in the file.
    levels : nodes of each, the leaves first.
    """

    tiling: Tiling
    start: int
    levels: list[int]

    def tables(self) -> Iterator[Table]:
        kind = _node_type(len(self.tiling.shape))
        start = self.start
        for level, length in enumerate(self.levels):
            rows = partial(self._nodes, kind, level, start)
            yield Table(start, length, kind.itemsize, rows)
            start += length * kind.itemsize

    def _nodes(self, kind: np.dtype[Any], level: int, start: int, numbers: Numbers) -> Rows:
        """Nodes of one level; ``start`` : of the first one."""
        tiling = self.tiling
        total = math.prod(tiling.counts)
        below = self.levels[level - 1] if level else total
        nodes = np.zeros(len(numbers), kind)
        nodes["head"], nodes["type"], nodes["level"] = b"TREE", 1, level
        nodes["used"] = np.minimum(_CHILDREN, below - numbers * _CHILDREN)
        here = start + numbers * kind.itemsize
        inside = numbers < self.levels[level] - 1
        nodes["left"] = nodes["right"] = np.uint64(UNDEFINED)
        nodes["left"][numbers > 0] = (here - kind.itemsize)[numbers > 0]
        nodes["right"][inside] = (here + kind.itemsize)[inside]
        child = numbers[:, None] * _CHILDREN + np.arange(_CHILDREN + 1)
        # A key is the place of the first chunk of its child; the last one is beyond all chunks.
        chunk = np.minimum(child * _CHILDREN**level, total)
        keys = np.zeros(chunk.shape, kind["last"])
        keys["size"] = tiling.nbytes
        for axis in range(len(tiling.shape)):
            inner = math.prod(tiling.counts[axis + 1 :])
            index = chunk // inner
            index = index % tiling.counts[axis] if axis else index
            keys["offset"][..., axis] = index * tiling.shape[axis]
        nodes["children"]["key"], nodes["last"] = keys[:, :-1], keys[:, -1]
        base, step = tiling.start, tiling.stride
        if level:
            base, step = start - self.levels[level - 1] * kind.itemsize, kind.itemsize
        nodes["children"]["address"] = base + child[:, :-1] * step
        return nodes.view(np.uint8).reshape(len(numbers), kind.itemsize)
