"""Chunk grids and chunk key encodings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.errors import MetadataError
from zarrfs.format.chunk_grid import CHUNK_GRIDS, ChunkGrid
from zarrfs.format.chunk_layout import DefaultKeys, V2Keys, parse_chunk_keys


class TestRegular:
    def test_overhang(self):
        grid = ChunkGrid.regular((5, 7), (2, 3))
        assert (grid.counts, grid.chunks) == ((3, 3), 9)
        assert grid.origin((2, 2)) == (4, 6)
        assert grid.chunk_shape((2, 2)) == (2, 3)
        assert grid.valid_shape((2, 2)) == (1, 1)
        assert grid.contains((2, 2))
        assert not grid.contains((3, 0))
        assert not grid.contains((0, -1))
        assert not grid.contains((0,))

    def test_as_many_chunks_as_can_be(self):
        grid = ChunkGrid.regular((2**62,), (1,))
        assert (grid.chunks, grid.origin((2**62 - 1,))) == (2**62, (2**62 - 1,))

    @given(st.integers(1, 100), st.integers(1, 20), st.data())
    def test_every_element_is_in_its_chunk(self, extent, chunk, data):
        axis = ChunkGrid.regular((extent,), (chunk,)).axes[0]
        element = data.draw(st.integers(0, extent - 1))
        index = axis.chunk_of(element)
        assert axis.origin(index) <= element < axis.origin(index) + axis.length(index)


@pytest.mark.parametrize(("encoding", "index", "key"), [
    (DefaultKeys(), (), "c"),
    (DefaultKeys("."), (), "c"),
    (DefaultKeys(), (1, 23, 45), "c/1/23/45"),
    (DefaultKeys("."), (1, 23, 45), "c.1.23.45"),
    (V2Keys(), (), "0"),
    (V2Keys("/"), (), "0"),
    (V2Keys(), (1, 23, 45), "1.23.45"),
    (V2Keys("/"), (1, 23, 45), "1/23/45"),
])  # fmt: skip
def test_chunk_keys(encoding, index, key):
    assert encoding.key(index) == key


@pytest.mark.parametrize(("metadata", "key"), [
    ({"name": "default"}, "c/1/2"),
    ("default", "c/1/2"),
    ({"name": "default", "configuration": {"separator": "."}}, "c.1.2"),
    ({"name": "v2"}, "1.2"),
    ({"name": "v2", "configuration": {"separator": "/"}}, "1/2"),
])  # fmt: skip
def test_chunk_keys_as_metadata_has_them(parse, metadata, key):
    assert parse(chunk_key_encoding=metadata).chunk_keys.key((1, 2)) == key


def test_indices_of_no_chunks_take_no_memory():
    grid = ChunkGrid.regular((1 << 60, 3, 0), (1, 1, 1))
    assert list(grid.every_index()) == []
    assert list(ChunkGrid.regular((2, 3), (1, 2)).every_index()) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(ChunkGrid.regular((), ()).every_index()) == [()]


def grid_axis(extent, axis, name="rectilinear"):
    configuration = (
        {"kind": "inline", "chunk_shapes": [axis]} if name == "rectilinear"
        else {"chunk_shape": [axis]}
    )  # fmt: skip
    return CHUNK_GRIDS[name]((extent,), configuration).axes[0]


class TestRuns:
    @pytest.mark.parametrize(("axis", "lengths"), [
        (4, [4, 4]),
        ([1, 2, 3], [1, 2, 3]),
        ([[4, 2]], [4, 4]),
        ([[1, 3], 3], [1, 1, 1, 3]),
        ([4, 4, 4], [4, 4]),
        ([6], [6]),
        ([[100, 5]], [100]),
    ])  # fmt: skip
    def test_the_example_of_the_specification(self, axis, lengths):
        made = grid_axis(6, axis)
        assert [made.length(i) for i in range(made.count)] == lengths
        assert [made.origin(i) for i in range(made.count)] == [
            sum(lengths[:i]) for i in range(len(lengths))
        ]
        assert made.longest == max(lengths)
        assert made.lengths == frozenset(lengths)

    def test_rectangular(self):
        made = grid_axis(6, [1, 5], "rectangular")
        assert [made.length(i) for i in range(made.count)] == [1, 5]
        with pytest.raises(ValueError, match="length"):
            grid_axis(6, [[1, 6]], "rectangular")

    def test_bounded(self):
        made = grid_axis(7, 3, "zarrs.regular_bounded")
        assert [made.length(i) for i in range(made.count)] == [3, 3, 1]
        assert grid_axis(6, 3, "zarrs.regular_bounded").count == 2
        assert grid_axis(0, 3, "zarrs.regular_bounded").count == 0

    def test_an_axis_of_no_elements(self):
        made = grid_axis(0, [3, 3])
        assert (made.count, made.longest, made.origin(0)) == (0, 1, 0)

    def test_as_many_chunks_as_can_be(self):
        made = grid_axis(2**62, [[1, 2**61], [2, 2**60]])
        assert made.count == 2**61 + 2**60
        assert made.chunk_of(2**62 - 1) == made.count - 1
        assert made.origin(made.count - 1) == 2**62 - 2

    @given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=6),
           st.data())  # fmt: skip
    def test_every_element_is_in_its_chunk(self, runs, data):
        lengths = [length for length, n in runs for _ in range(n)]
        extent = data.draw(st.integers(1, sum(lengths)))
        made = grid_axis(extent, [list(run) for run in runs])
        origins = [sum(lengths[:i]) for i in range(len(lengths))]
        assert made.count == sum(origin < extent for origin in origins)
        for index in range(made.count):
            assert (made.origin(index), made.length(index)) == (origins[index], lengths[index])
        element = data.draw(st.integers(0, extent - 1))
        index = made.chunk_of(element)
        assert origins[index] <= element < origins[index] + lengths[index]

    @pytest.mark.parametrize("axis", [
        0, -1, True, 1.5, "4", None, [], [1, 2], [0, 6], [[1, 0], 6], [[0, 1], 6], [[1]],
        [[1, 2, 3]], [[[1], 6]], [6, 0], [True, 6],
    ])  # fmt: skip
    def test_what_is_no_axis(self, axis):
        with pytest.raises(ValueError):
            grid_axis(6, axis)

    def test_in_metadata(self, parse):
        grid = {
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [[1, [2, 2]], 4]},
        }
        array = parse(chunk_grid=grid)
        layout = array.layout
        assert layout.read.counts == (3, 2)
        assert layout.read.regular_shape is None
        assert layout.read.chunk_shape((0, 1)) == (1, 4)
        assert layout.read.valid_shape((2, 1)) == (2, 3)
        assert layout.chunk_codec(layout.read.chunk_shape((0, 0))).encoded.maximum == 1 * 4 * 2

    @pytest.mark.parametrize(("first", "fits"), [([2, [4, 1]], True), ([3, 2], False)])
    def test_shards_of_several_shapes(self, parse, first, fits):
        sharding = {
            "name": "sharding_indexed",
            "configuration": {"chunk_shape": [2, 3], "codecs": [{"name": "bytes"}],
                              "index_codecs": [{"name": "bytes"}]},
        }  # fmt: skip
        grid = {
            "name": "rectilinear",
            "configuration": {"kind": "inline", "chunk_shapes": [first, [3, 6]]},
        }
        if not fits:
            with pytest.raises(MetadataError, match="divide"):
                parse(chunk_grid=grid, codecs=[sharding])
            return
        layout = parse(chunk_grid=grid, codecs=[sharding]).layout
        assert layout.read.regular_shape == (2, 3)
        assert layout.stored_index((2, 2)) == (1, 1)
        assert layout.levels[0].index_codec((4, 6)).counts == (2, 2)

    @pytest.mark.parametrize("configuration", [
        {}, {"kind": "outline", "chunk_shapes": [4, 4]}, {"kind": "inline", "chunk_shapes": [4]},
        {"kind": "inline", "chunk_shapes": 4}, {"kind": "inline", "chunk_shapes": [4, 4], "x": 1},
    ])  # fmt: skip
    def test_malformed(self, parse, configuration):
        with pytest.raises(MetadataError):
            parse(chunk_grid={"name": "rectilinear", "configuration": configuration})


@pytest.mark.parametrize(("metadata", "index", "key"), [
    ({"name": "suffix", "configuration": {"suffix": ".tiff"}}, (1, 2), "c/1/2.tiff"),
    ({"name": "suffix", "configuration": {"suffix": ".tiff", "base-encoding": {"name": "v2"}}},
     (1, 2), "1.2.tiff"),
    ({"name": "suffix", "configuration": {"suffix": ".a", "base-encoding": {
        "name": "suffix", "configuration": {"suffix": ".b"}}}}, (), "c.b.a"),
    ({"name": "zarrs.default_suffix", "configuration": {"suffix": ".x", "separator": "."}},
     (1, 2), "c.1.2.x"),
    ("fanout", (), "c"),
    ("fanout", (0,), "c/0/000"),
    ("fanout", (12,), "c/0/012"),
    ("fanout", (1234567,), "c/2/001/234/567"),
    ("fanout", (1234, 5, 0, 6789012), "c/1/001/234/0/005/0/000/2/006/789/012"),
    ({"name": "fanout", "configuration": {"max_children": 100}}, (12345,), "c/2/01/23/45"),
    ({"name": "fanout", "configuration": {"max_children": 999}}, (100,), "c/1/01/00"),
])  # fmt: skip
def test_proposed_chunk_keys(metadata, index, key):
    assert parse_chunk_keys(metadata).key(index) == key


@pytest.mark.parametrize("metadata", [
    {"name": "suffix"}, {"name": "suffix", "configuration": {"suffix": "/../x"}},
    {"name": "suffix", "configuration": {"suffix": 5}},
    {"name": "suffix", "configuration": {"suffix": ".x", "base": "v2"}},
    {"name": "suffix", "configuration": {"suffix": ".x", "base-encoding": "unknown"}},
    {"name": "fanout", "configuration": {"max_children": 10}},
    {"name": "fanout", "configuration": {"max_children": "many"}},
    {"name": "fanout", "configuration": {"min_children": 100}},
    {"name": "default", "configuration": {"separator": "-"}}, {"name": "v2", "configuration": 5},
    5, None, {}, "unknown",
])  # fmt: skip
def test_chunk_keys_that_are_none(metadata):
    with pytest.raises(ValueError):
        parse_chunk_keys(metadata)
