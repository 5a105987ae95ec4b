"""Any box of any array, read and written, against numpy."""

import math

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from tests.model.arrays import models
from zarrfs.format.chunk_grid import ChunkGrid, RunsAxis
from zarrfs.library.transfer.tiles import TilePlan
from zarrfs.views.elements.region import parse_region, select
from zarrfs.views.elements.window import Window

profile = settings.get_profile("library")
SMALL = zarrfs.SourceOptions(memory=32 << 20, loaders=2)


def selections(shape):
    """Indices that numpy takes, of which each axis is an integer or a slice."""

    def item(extent):
        bound = st.none() | st.integers(-extent - 2, extent + 2)
        steps = st.none() | st.integers(-extent - 1, extent + 1).filter(bool)
        pieces = st.builds(slice, bound, bound) | st.builds(slice, bound, bound, steps)
        return pieces | st.integers(-extent, extent - 1) if extent else pieces

    items = st.tuples(*map(item, shape))
    return items | st.integers(0, len(shape)).flatmap(
        lambda n: items.map(lambda chosen: (*chosen[:n], ...))
    )


def same(one, other):
    return one.shape == other.shape and one.tobytes() == other.tobytes()


@st.composite
def reads(draw):
    model = draw(models())
    return model, draw(st.lists(selections(model.shape), min_size=6, max_size=6))


KINDS = st.sampled_from(("as it is", "one", "strided", "swapped"))


@st.composite
def writes(draw):
    model = draw(models())
    step = st.tuples(selections(model.shape), KINDS, st.booleans())
    return model, draw(st.lists(step, min_size=5, max_size=5))


@settings(profile, max_examples=40)
@given(script=reads())
def test_any_box_reads_as_numpy_has_it(place, script):
    model, wanted = script
    numbers = model.numbers()
    with zarrfs.open_array(str(place(model)), options=SMALL) as array:
        assert (array.shape, array.dtype) == (model.shape, numbers.dtype)
        assert array.chunks == model.chunks
        assert same(array.read(), numbers)
        for selection in wanted:
            assert same(array[selection], np.asarray(numbers[selection]))


@settings(profile, max_examples=40)
@given(script=writes())
def test_any_box_is_written_as_numpy_does(place, script):
    model, steps = script
    numbers = model.numbers()
    path = place(model)
    with zarrfs.open_array(str(path), writable=True, options=SMALL) as array:
        for i, (selection, kind, flush) in enumerate(steps):
            shape = numbers[selection].shape
            values = np.arange(i, i + math.prod(shape)).reshape(shape) % 2
            if kind == "one":
                values = np.asarray(i % 2)
            values = values.astype(numbers.dtype)
            if kind == "strided" and shape:
                values = np.asfortranarray(values)
            if kind == "swapped":
                values = values.astype(values.dtype.newbyteorder(">"))
            array[selection] = values
            numbers[selection] = values
            assert same(array[selection], np.asarray(numbers[selection]))
            if flush:
                array.flush()
                assert same(np.asarray(zarr.open_array(path, mode="r")[...]), numbers)
        assert same(array.read(), numbers)
    assert same(np.asarray(zarr.open_array(path, mode="r")[...]), numbers)


@settings(profile, max_examples=200)
@given(data=st.data())
def test_tiles_cover_a_window_once_and_fit(data):
    rank = data.draw(st.integers(0, 4))
    axes, origin, shape = [], [], []
    for _ in range(rank):
        lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
        extent = data.draw(st.integers(sum(lengths[:-1]) + 1, sum(lengths)))
        axes.append(RunsAxis(extent, [(n, 1) for n in lengths]))
        start = data.draw(st.integers(0, extent))
        origin.append(start)
        shape.append(data.draw(st.integers(0, extent - start)))
    window = Window(ChunkGrid(axes), tuple(origin), tuple(shape))
    most = data.draw(st.sampled_from((1, 2, 5, 30, 200, 10_000)))
    plan = TilePlan.make(window, most)
    expected = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    file = np.full(expected.size, -1)
    firsts = []
    for tile in plan:
        part = expected[tile.slices()]
        assert part.size == tile.elements
        assert 0 < part.size <= most
        firsts.append(int(part.reshape(-1)[0]))
        runs = list(tile.runs(window.shape))
        assert [run.in_file for run in runs] == sorted(run.in_file for run in runs)
        for run in runs:
            assert (file[run.in_file : run.in_file + run.elements] == -1).all()
            values = part.reshape(-1)[run.in_tile : run.in_tile + run.elements]
            file[run.in_file : run.in_file + run.elements] = values
        if not plan.cuts_chunks:
            # No chunk is in two tiles.
            for axis, begin, whole, first, length in zip(
                axes, origin, shape, tile.start, tile.shape, strict=True
            ):
                low, high = begin + first, begin + first + length
                assert low in (begin, axis.origin(axis.chunk_of(low)))
                last = axis.chunk_of(high - 1)
                assert high in (begin + whole, axis.origin(last) + axis.length(last))
    assert (file == expected.reshape(-1)).all()
    assert firsts == sorted(firsts)
    position = 0
    for tile in TilePlan.in_file_order(window, most):
        (run,) = tile.runs(window.shape)
        assert run.in_file == position
        assert 0 < run.elements == tile.elements <= most
        position += run.elements
    assert position == expected.size


@pytest.mark.parametrize(
    "selection",
    [(0, 0, 0), (..., ...), slice("a"), slice(0.5), True, 5, -6, None, "a", [0, 1], 1.0],
)
def test_what_is_no_box_is_refused(selection):
    with pytest.raises(IndexError):
        select(selection, (5, 4))


@settings(profile, max_examples=200)
@given(data=st.data())
def test_regions_in_text_are_what_numpy_makes_of_them(data):
    shape = data.draw(st.lists(st.integers(1, 9), max_size=3).map(tuple))
    numbers = np.arange(math.prod(shape)).reshape(shape)
    texts, slices = [], []
    for extent in shape[: data.draw(st.integers(0, len(shape)))]:
        start = data.draw(st.integers(0, extent))
        stop = data.draw(st.integers(start, extent))
        if data.draw(st.booleans()):
            index = data.draw(st.integers(-extent, extent - 1))
            texts.append(str(index))
            slices.append(index)
            continue
        low = data.draw(st.sampled_from((start, start - extent if start < extent else start)))
        texts.append(f"{low}:{stop}" if stop < extent else f" {low} : ")
        slices.append(slice(start, stop))
    region = parse_region(",".join(texts), shape)
    assert region.result_shape == numbers[tuple(slices)].shape
    box = numbers[tuple(slice(o, o + n) for o, n in zip(region.origin, region.shape, strict=True))]
    assert np.array_equal(box.reshape(region.result_shape), numbers[tuple(slices)])
