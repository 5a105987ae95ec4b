"""Every row of the benchmarks runs, on arrays of a few MiB; how fast is not asked."""

import math

import numpy as np
import pytest

from benchmarks.__main__ import measure
from benchmarks.bench import access
from benchmarks.measuring import page_cache
from benchmarks.measuring.native import program
from benchmarks.rows import ROWS
from benchmarks.scale import TINY

pytestmark = [pytest.mark.mount, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("benchmarks")


@pytest.fixture(autouse=True)
def _others_keep_their_caches(monkeypatch):
    monkeypatch.setattr(page_cache, "drop_all", lambda _: None)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(row, directory, request):
    if row.name != "chunk-file":
        request.getfixturevalue("nothing_starts_anew")
    kind = "f" if row.name == "hits" else "e"
    measured = measure([row], TINY, directory, [kind])[row.name]
    assert measured.error == ""
    assert measured.outcomes
    for outcome in measured.outcomes:
        assert {outcome.subject, outcome.peer} <= set(outcome.seconds)
        assert math.isfinite(outcome.figure)
        assert outcome.figure > 0
    assert measured.peak is not None


def test_a_file_that_takes_long_to_open_is_read_at_least_once(tmp_path):
    (tmp_path / "file").write_bytes(bytes(4096))
    np.zeros(1, np.int64).tofile(tmp_path / "offsets")
    access_c = program("access", tmp_path)
    assert access(access_c, "pread", tmp_path / "file", tmp_path / "offsets", 4096, 1e-9) > 0
