"""Blocks: whichever way they are cut, their chunks are the same and lie in the same places."""

import json
import math
from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.fs.documents import LITTLE, array_document, sharding
from zarrfs.array.block import Block
from zarrfs.format.metadata.v3 import parse_node
from zarrfs.views.elements.window import Window, boxes


def layout_of(shape, chunk, inner):
    codecs = [LITTLE] if inner is None else [sharding(inner)]
    document = array_document(shape, chunk, codecs=codecs)
    return parse_node(json.loads(document), "zarr.json").layout


@st.composite
def blocks(draw):
    rank = draw(st.integers(0, 3))
    shape = draw(st.tuples(*[st.integers(1, 20)] * rank))
    inner = draw(st.tuples(*[st.integers(1, 4)] * rank))
    sharded = draw(st.booleans()) and rank > 0
    chunk = tuple(n * draw(st.integers(1, 3)) for n in inner)
    layout = layout_of(shape, chunk if sharded else inner, inner if sharded else None)
    window = Window.whole(layout.read)
    start = draw(st.integers(0, window.elements - 1))
    stop = draw(st.integers(start + 1, window.elements))
    box = draw(st.sampled_from(list(boxes(window.shape, start, stop))))
    memory = np.zeros(math.prod(box.shape), np.uint16).reshape(box.shape)
    block = Block(tuple(window.runs(box)), memory, memory.dtype)
    return layout, block, window, box


@given(blocks(), st.integers(1, 9))
def test_a_block_writes_to_its_part_of_the_memory(case, most):
    layout, block, _, _ = case
    parts = [job for one in block.shards(layout) for job in one.jobs(None, most)]
    for part in parts:
        block.target[...] = 0
        part.part[...] = 1
        for piece in part.pieces():
            assert piece.target.all()
            piece.target[...] = 0
        assert not block.target.any()


@given(blocks(), st.integers(1, 9))
def test_jobs_are_the_same_chunks_in_whatever_memory(case, most):
    layout, block, _, _ = case
    pieces = {piece.chunk: piece for piece in block.pieces()}
    found = []
    for band in block.jobs(layout, most):
        assert 1 <= band.count <= most
        elsewhere = band.moved(np.zeros(band.part.shape, np.uint16))
        for part in elsewhere.shards(layout):
            for piece in part.pieces():
                assert piece.source == pieces[piece.chunk].source
                piece.target[...] = len(found) + 1
                pieces[piece.chunk].target[...] = len(found) + 1
                found.append(piece.chunk)
        assert np.array_equal(elsewhere.target, band.part)
    assert sorted(found) == sorted(pieces)


@given(blocks(), st.integers(1, 9))
def test_patches_are_the_same_chunks(case, most):
    layout, block, _, _ = case
    pieces = {piece.chunk: piece for piece in block.pieces()}
    found = []
    for patch in block.patches(layout):
        parts = list(patch.cut(most))
        assert all(1 <= part.chunks <= most for part in parts)
        indices = [index for part in parts for index in part.indices()]
        assert indices == list(patch.indices())
        assert len(parts) == 1 or len(parts) >= patch.chunks / most
        for part in parts:
            for index, target in zip(part.indices(), part.pieces(), strict=True):
                assert part.source == pieces[index].source
                assert np.shares_memory(target, pieces[index].target)
                target[...] = len(found)
                assert (pieces[index].target == len(found)).all()
                found.append(index)
    assert sorted(found) == sorted(pieces)
    # Those of a shard follow each other.
    shards = [shard for shard, _ in groupby(map(layout.stored_index, found))]
    assert not layout.sharded or len(shards) == len(set(shards))


@given(blocks(), st.integers(1, 9))
def test_parts_are_small_and_together_the_whole(case, most):
    layout, block, window, box = case
    parts = [job for one in block.shards(layout) for job in one.jobs(None, most)]
    assert all(1 <= part.count <= most for part in parts)
    if layout.sharded:
        for part in parts:
            assert len({layout.stored_index(index) for index in part.indices()}) == 1
    # Each element is marked with what it is in the array, once.
    where = np.arange(window.elements, dtype=np.uint16).reshape(window.shape)
    block.target[...] = 0xFFFF
    for part in parts:
        assert part.count == len(list(part.indices()))
        for index, piece in zip(part.indices(), part.pieces(), strict=True):
            assert piece.chunk == index
            origin = layout.read.origin(index)
            source = tuple(
                slice(o + s.start, o + s.stop) for o, s in zip(origin, piece.source, strict=True)
            )
            assert (piece.target == 0xFFFF).all()
            piece.target[...] = where[source]
    inside = tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))
    assert np.array_equal(block.target, where[inside])
