"""What the benchmarks make of times: ratios, verdicts, tables, charts; and that all do the same."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import zarr

from benchmarks import plots, report
from benchmarks.__main__ import main
from benchmarks.arrays import Arrays
from benchmarks.bench import PAGE, Row, random_pages
from benchmarks.figures import MIB, RowFigures, load, save
from benchmarks.libraries import tensorstore
from benchmarks.measure import Comparison, Limit, Outcome, compare, in_unit
from benchmarks.scale import TINY

pytestmark = pytest.mark.timeout(60)

ROOT = Path(__file__).parents[2]
FAST = Limit("at least", 1.0, 2.0)
CHEAP = Limit("at most", 1.2)
MACHINE = {
    "measured": "2025-01-02T03:04:05+00:00",
    "cpu": "Example",
    "cores": 2,
    "memory": 8 << 30,
    "load": 0.5,
    "kernel": "6.1",
    "python": "3.11.2",
    "libfuse": "3.14",
    "versions": {"zarrfs": "1.0"},
}
SCALE = {"volume": (1024, 1024, 512), "image": (16384, 16384), "rounds": 3}


def times(*seconds: float):
    """A contender that takes these times, one after the other."""
    left = list(seconds)
    return lambda: left.pop(0)


def outcome(row: str, figure: float, label: str = "(a)") -> Outcome:
    seconds = {"zarrfs": [1.0, 2.0, 3.0], "TensorStore": [3.0, 3.0, 4.0]}
    return Outcome(row, label, "zarrfs", "TensorStore", figure, seconds, 1e9, "MB/s")


def rows_and_figures():
    rows = [
        Row("sequential", "reading", "a library", FAST, lambda _: iter(())),
        Row("start", "starting", "an import", CHEAP, lambda _: iter(())),
    ]
    figures = {
        "sequential": RowFigures(
            MACHINE,
            SCALE,
            [outcome("sequential", f, n) for f, n in ((0.5, "(a)"), (1.5, "(b)"), (2.5, "(c)"))],
            peak=20 * MIB,
        ),
        "start": RowFigures(MACHINE, SCALE, [outcome("start", 1.1, "")], peak=30 * MIB),
    }
    return rows, figures


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


def test_who_is_there_for_orientation_is_measured_less_often():
    scale = replace(TINY, rounds=3, orientation_rounds=2, orientation_seconds=60)

    def contenders():
        return {
            "zarrfs": times(1, 1, 1),
            "TensorStore": times(1, 1, 1),
            "zarr-python": times(1, 1, 1),
        }

    def measured(scale):
        return compare("r", FAST, Comparison("", contenders()), scale).seconds

    assert [len(found) for found in measured(scale).values()] == [3, 3, 2]
    assert [len(found) for found in measured(replace(scale, orientation_seconds=0)).values()] == [
        3,
        3,
        1,
    ]
    assert set(measured(replace(scale, orientation_rounds=0))) == {"zarrfs", "TensorStore"}


def test_what_is_short_is_measured_more_often(monkeypatch):
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    scale = replace(TINY, rounds=2, most_rounds=9, brief=15)
    comparison = Comparison("", {name: times(*[1] * 9) for name in ("zarrfs", "TensorStore")})
    found = compare("r", FAST, comparison, scale)
    assert [len(seconds) for seconds in found.seconds.values()] == [4, 4]


def test_patience_ends_a_comparison_and_the_table_tells(monkeypatch):
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    comparison = Comparison("", {"zarrfs": times(1, 1, 1), "TensorStore": times(1, 1, 1)})
    found = compare("start", CHEAP, comparison, replace(TINY, rounds=3, patience=30))
    assert [len(seconds) for seconds in found.seconds.values()] == [2, 2]
    rows, figures = rows_and_figures()
    figures["start"] = RowFigures(MACHINE, SCALE, [found])
    assert "| starting (2 of 3 rounds) |" in report.page(figures, rows)


@pytest.mark.parametrize(
    ("limit", "figure", "met"),
    [(FAST, 1.0, True), (FAST, 0.99, False), (CHEAP, 1.2, True), (CHEAP, 1.21, False)],
)
def test_a_limit_is_met_from_its_side(limit, figure, met):
    assert limit.met(figure, limit.must) is met


def test_units():
    assert in_unit(2.0, 1e9, "MB/s") == 500
    assert in_unit(2.0, 4, "ms") == 500
    assert in_unit(0.001, 1, "reads/s") == 1000


def test_figures_are_kept(tmp_path):
    _, figures = rows_and_figures()
    save(tmp_path / "kept.json", figures)
    kept = load(tmp_path / "kept.json")
    assert kept["start"].outcomes == figures["start"].outcomes
    save(tmp_path / "again.json", kept)
    assert (tmp_path / "again.json").read_text() == (tmp_path / "kept.json").read_text()
    assert load(tmp_path / "nothing.json") == {}


def test_the_page_tells_figures_conditions_and_verdicts():
    rows, figures = rows_and_figures()
    page = report.page(figures, rows)
    rates = "500 MB/s | 333 MB/s"
    assert f"| reading (a) | a library | {rates} | **0.50×** | ≥ 1× | ≥ 2× | missed |" in page
    assert f"| (b) |  | {rates} | **1.50×** | ≥ 1× | ≥ 2× | reached |" in page
    assert "**2.50×** | ≥ 1× | ≥ 2× | aim reached |" in page
    assert f"| starting | an import | {rates} | **1.10×** | ≤ 1.2× |  | reached |" in page
    # The highest of all rows.
    assert "(in start) | its budget |  |  | **30 MiB** | ≤ 150 MiB | ≤ 80 MiB | aim" in page
    assert "2 cores" in page
    assert "zarrfs 1.0" in page
    assert "1 GiB (1024 × 1024 × 512)" in page


def test_what_could_not_be_measured_is_told():
    rows, figures = rows_and_figures()
    figures["start"] = RowFigures(MACHINE, SCALE, [], error="OSError: no fuse")
    assert "`start` could not be measured: OSError: no fuse" in report.page(figures, rows)


def test_lines_say_what_is_missed():
    assert report.line(outcome("r", 0.5), FAST).startswith("MISS r")
    assert report.line(outcome("r", 1.5), FAST).startswith("ok   r")


def test_a_block_is_replaced_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x: written by make bench -->\nold\n<!-- x: end -->\nafter\n")
    for _ in range(2):
        report.replace_block(page, "x", "new\n")
        assert page.read_text() == (
            "before\n<!-- x: written by make bench -->\n\nnew\n\n<!-- x: end -->\nafter\n"
        )
    with pytest.raises(ValueError, match="has no"):
        report.replace_block(page, "y", "new")


def test_charts_have_a_mark_for_each_figure():
    rows, figures = rows_and_figures()
    svg = "{http://www.w3.org/2000/svg}"
    chart = ET.fromstring(plots.ratios(figures, rows))
    assert [mark.get("class") for mark in chart.iter(f"{svg}circle")] == [
        *("bad", "fair", "good"),
        "good",
        "good",  # memory
    ]
    chart = ET.fromstring(plots.rates(figures["sequential"].outcomes))
    assert len(list(chart.iter(f"{svg}rect"))) == 2 + 3 * 2  # with the legend


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
