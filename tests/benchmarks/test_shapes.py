"""Arrays of any shape: those that `make bench-shapes` draws, small and through a real mount."""

import json
import math
import os
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from benchmarks.bench import PAGE
from benchmarks.libraries import tensorstore
from benchmarks.shapes.__main__ import main, rows, seeds, size
from benchmarks.shapes.drawing import STYLES, chunk_limits, draw
from benchmarks.shapes.outcome import measure
from benchmarks.shapes.places import planes, random_places
from benchmarks.shapes.rows import ROWS, Task
from benchmarks.shapes.subject import Subject
from benchmarks.shapes.workshop import Turn

pytestmark = pytest.mark.timeout(100)

SMALL = 1 << 20
FULL = 256 << 20
_REQUEST = 65_521  # a prime: requests end within elements


@pytest.fixture(autouse=True)
def _nothing_is_timed(monkeypatch):
    """A GiB of memory, and what other tests wrote, would take longer than the turns themselves."""
    monkeypatch.setattr("benchmarks.shapes.workshop._MEMORY", SMALL)
    monkeypatch.setattr("benchmarks.shapes.subject._sync", lambda _: None)


def test_a_seed_draws_the_same_geometry_every_time():
    assert draw(5, FULL) == draw(5, FULL)
    assert draw(5, FULL) != draw(6, FULL)


def test_forty_seeds_draw_every_kind_of_array():
    drawn = [draw(seed, FULL) for seed in range(40)]
    assert {len(geometry.shape) for geometry in drawn} == {1, 2, 3, 4, 5}
    assert {geometry.style for geometry in drawn} == set(STYLES)
    assert len({geometry.data_type for geometry in drawn}) == 8
    assert {3, 37} <= {geometry.shape[-1] for geometry in drawn}
    codecs = Counter(codec["name"] for geometry in drawn for codec in geometry.codecs)
    assert set(codecs) == {"transpose", "bytes", "blosc", "zstd", "gzip", "crc32c"}
    assert any("big" in str(geometry) for geometry in drawn)
    assert 8 <= sum(geometry.shard is not None for geometry in drawn) <= 18
    assert any(geometry.chunk[0] == geometry.shape[0] > 1000 for geometry in drawn)


@pytest.mark.parametrize("wanted", [SMALL, FULL])
def test_a_geometry_keeps_its_limits(wanted):
    low, high = chunk_limits(wanted)
    for seed in range(200):
        geometry = draw(seed, wanted)
        assert low <= geometry.chunk_bytes <= high
        assert 0.75 * wanted <= geometry.size <= 1.05 * wanted
        if geometry.shard is not None:
            factors = [s // c for s, c in zip(geometry.shard, geometry.chunk, strict=True)]
            assert all(1 <= factor <= 8 for factor in factors)
            assert geometry.shard == tuple(
                map(math.prod, zip(geometry.chunk, factors, strict=True))
            )


def test_random_places_are_boxes_of_the_array_that_a_library_reads():
    for seed in range(12):
        geometry = draw(seed, SMALL)
        item = geometry.dtype.itemsize
        elements = np.arange(geometry.size // item).reshape(geometry.shape)
        places, length = random_places(geometry, 20)
        assert PAGE // 2 < length <= PAGE
        boxes = tensorstore._boxes(geometry.shape, places // item, length // item)
        for place, box in zip(places.tolist(), boxes, strict=True):
            found = elements[box].reshape(-1)
            assert found.tolist() == list(range(place // item, (place + length) // item))


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    return tmp_path_factory.mktemp("shapes")


@pytest.mark.mount
@pytest.mark.parametrize("seed", [3, 6, 7, 9, 12, 15, 17, 22])
def test_every_byte_through_a_mount_is_that_of_the_source(seed, parent, mount_daemon):
    """Sequential and random reads, planes; then all is overwritten, and a library reads it."""
    subject = Subject.build(draw(seed, SMALL), parent)
    geometry = subject.geometry
    daemon = mount_daemon(subject.array, "rw")
    flat, expected = daemon.path / "array.bin", subject.plain.read_bytes()
    with flat.open("rb", buffering=0) as file:
        places, length = random_places(geometry, 50)
        for place in places.tolist():
            assert os.pread(file.fileno(), length, place) == expected[place : place + length]
        found = b"".join(iter(lambda: file.read(_REQUEST), b""))
    assert found == expected
    if geometry.plane_axis is not None:
        mapped = np.memmap(flat, geometry.dtype, "r", shape=geometry.shape)
        for position in planes(geometry, geometry.plane_axis)[0]:
            box = (slice(None),) * geometry.plane_axis + (position,)
            assert mapped[box].tobytes() == subject.elements[box].tobytes()
        del mapped

    other = subject.other.read_bytes()
    assert other != expected
    with flat.open("r+b", buffering=0) as file:
        for place in range(0, len(other), _REQUEST):
            assert file.write(other[place : place + _REQUEST]) == len(other[place:][:_REQUEST])
        os.fsync(file.fileno())
    tensorstore.expect(str(subject.array), str(subject.other))()
    assert flat.read_bytes() == other
    daemon.umount()
    tensorstore.expect(str(subject.array), str(subject.other))()
    with pytest.raises(ValueError, match="does not hold"):
        tensorstore.expect(str(subject.array), str(subject.plain))()


@pytest.mark.mount
def test_all_rows_are_measured_and_kept(tmp_path, capsys, nothing_starts_anew):
    kept, chart = tmp_path / "kept.json", tmp_path / "chart.svg"
    words = ["--seeds", "8", "--size", "1M", "--turns", "1", "--directory", str(tmp_path / "work")]
    assert main([*words, "--json", str(kept), "--plot", str(chart)]) == 0
    document = json.loads(kept.read_text())
    assert [shape["row"] for shape in document["shapes"]] == list(ROWS)
    assert document["failures"] == []
    assert document["size"] == SMALL
    for shape in document["shapes"]:
        assert {"zarrfs", "TensorStore"} <= set(shape["turns"])
        assert all(turn["seconds"] > 0 for turns in shape["turns"].values() for turn in turns)
        assert shape["turns"]["zarrfs"][0]["processor"] > 0
        assert (shape["bound"] is not None) == (shape["row"] in ("read", "cold", "write"))
    printed = capsys.readouterr().out
    assert all(f"{name} (processor time)" in printed for name in ROWS)
    assert printed.count("(through FUSE, at most)") == 3
    assert (
        len(list(ET.fromstring(chart.read_text()).iter("{http://www.w3.org/2000/svg}circle"))) == 6
    )
    assert list((tmp_path / "work").iterdir()) == []  # nothing is left


@pytest.mark.mount
def test_wrong_bytes_are_found_and_told(tmp_path, capsys):
    words = ["--seeds", "8", "--size", "1M", "--turns", "1", "--keep", str(tmp_path)]
    Subject.build(draw(8, SMALL), tmp_path)
    [directory] = tmp_path.iterdir()
    plain = directory / "plain.bin"
    plain.write_bytes(plain.read_bytes()[:-1] + b"\x55")
    assert main([*words, "--rows", "read"]) == 1
    assert "FAIL 8 exactness: ValueError" in capsys.readouterr().err
    assert directory.exists()


def test_a_library_that_cannot_read_an_array_is_left_out():
    def fails(_):
        raise RuntimeError("unsupported")

    def works(_):
        return Turn(1.0, 1.0)

    task = Task({"zarrfs": works, "TensorStore": works, "zarrs": fails}, 1.0)
    assert measure("read", draw(1, SMALL), task, 2, 1).missing == {"zarrs": "unsupported"}
    with pytest.raises(RuntimeError, match="unsupported"):
        measure("read", draw(1, SMALL), replace(task, contenders={"zarrfs": fails}), 2, 1)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (seeds, "0:3", [0, 1, 2]),
        (seeds, "7,2:4", [7, 2, 3]),
        (size, "64M", 64 << 20),
        (size, "4096", 4096),
        (rows, "read,plane", ["read", "plane"]),
    ],
)
def test_options(read, text, value):
    assert read(text) == value
