"""What the benchmarks make of times: ratios, verdicts, tables, charts; and that all do the same."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

from benchmarks.__main__ import main
from benchmarks.arrays import Arrays
from benchmarks.bench import PAGE, random_pages
from benchmarks.libraries import tensorstore
from benchmarks.measuring.measure import Comparison, Limit, compare
from benchmarks.scale import TINY

pytestmark = pytest.mark.timeout(60)

ROOT = Path(__file__).parents[2]
FAST = Limit("at least", 1.0, 2.0)
CHEAP = Limit("at most", 1.2)


def times(*seconds: float):
    """A contender that takes these times, one after the other."""
    left = list(seconds)
    return lambda: left.pop(0)


def test_contenders_take_turns():
    turns: list[str] = []
    comparison = Comparison(
        "", {n: lambda n=n: turns.append(n) or 1.0 for n in ("zarrfs", "TensorStore")}
    )
    compare("row", FAST, comparison, replace(TINY, rounds=3))
    assert turns == ["zarrfs", "TensorStore"] * 3


def test_the_figure_is_the_ratio_of_medians():
    def contenders():
        return {"zarrfs": times(1.0, 9.0, 2.0), "TensorStore": times(8.0, 6.0, 0.1)}

    scale = replace(TINY, rounds=3)
    assert compare("r", FAST, Comparison("", contenders()), scale).figure == 6.0 / 2.0
    assert compare("r", CHEAP, Comparison("", contenders()), scale).figure == 2.0 / 6.0


@pytest.mark.parametrize(
    ("limit", "figure", "met"),
    [(FAST, 1.0, True), (FAST, 0.99, False), (CHEAP, 1.2, True), (CHEAP, 1.21, False)],
)
def test_a_limit_is_met_from_its_side(limit, figure, met):
    assert limit.met(figure, limit.must) is met


def test_the_pages_show_what_is_kept(tmp_path):
    names = ["docs/performance.md"]
    names += [str(path.relative_to(ROOT)) for path in ROOT.glob("docs/performance*.[js]*")]
    (tmp_path / "docs").mkdir()
    for name in names:
        shutil.copy(ROOT / name, tmp_path / name)
    assert main(["--render", "--root", str(tmp_path)]) == 0
    for name in names:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), f"{name}: --render"


def test_random_pages_are_whole_and_seldom_the_same():
    places = random_pages(64 * PAGE, 100)
    assert len(places) == 100
    assert set(places % PAGE) == {0}
    assert len(set(places[:64])) == 64
    assert places.max() < 64 * PAGE


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    return Arrays(tmp_path_factory.mktemp("arrays"), TINY)


@pytest.mark.parametrize("kind", ["a", "e", "f"])
def test_an_array_holds_the_bytes_of_the_plain_file(arrays, kind):
    path = arrays.path(kind)
    stored = zarr.open_array(path, mode="r")
    np.testing.assert_array_equal(stored[...], arrays.memmap(kind))
    assert stored[...].std() > 10
    built = path.stat().st_mtime_ns
    assert arrays.path(kind).stat().st_mtime_ns == built


@pytest.mark.parametrize("kind", ["e", "f"])
def test_the_library_is_asked_for_the_same_elements(arrays, kind):
    item = arrays.dtype(kind).itemsize
    flat = arrays.memmap(kind).reshape(-1)
    places = random_pages(arrays.size(kind), 20) // item
    boxes = list(tensorstore._boxes(arrays.shape(kind), places, PAGE // item))
    for place, box in zip(places, boxes, strict=True):
        found = arrays.memmap(kind)[box].reshape(-1)
        np.testing.assert_array_equal(found, flat[place : place + PAGE // item])


def test_the_library_writes_the_same_elements(arrays, tmp_path):
    path = arrays.copy("e", "written")
    offsets = tmp_path / "offsets"
    places = random_pages(arrays.size("e"), 4)
    places.tofile(offsets)
    tensorstore.write_at(str(path), str(offsets), PAGE, str(arrays.plain("e")))()
    expected = np.array(arrays.memmap("e")).reshape(-1)
    for place in places:
        expected[place // 2 : (place + PAGE) // 2] = expected[: PAGE // 2]
    np.testing.assert_array_equal(
        zarr.open_array(path, mode="r")[...].reshape(-1),
        expected,
    )
