"""Some cases of every target of ``make fuzz``, the same each time; see `tests.fuzz`."""

import pytest

from tests.fuzz.run import TARGETS, Cases, run_apart

pytestmark = pytest.mark.timeout(300)

COUNTS = {
    "streams": 4_000,
    "documents": 500,
    "isolated": 500,
    "shards": 500,
    "texts": 1_000,
    "archives": 100,
    "replies": 20,
    "journals": 300,
    "caches": 200,
    "icechunk": 10,
    "parquet": 10,
    "hdf5": 6,
    "tiff": 6,
    "grib": 2,
    "mounts": 1,
    "writes": 1,
}
MOUNTS = ("mounts", "writes")


@pytest.mark.parametrize("target", [
    *(pytest.param(name, marks=pytest.mark.mount) for name in MOUNTS),
    *sorted(TARGETS.keys() - {*MOUNTS}),
])  # fmt: skip
def test_nothing_but_errors_of_ours(target, tmp_path):
    ran, outcomes, failures = run_apart(target, 1, range(COUNTS[target]), tmp_path)
    assert "\n".join(map(str, failures)) == ""
    assert ran == COUNTS[target]
    # Neither is everything refused before it is looked at, nor nothing.
    assert 0 < outcomes["served"] < ran or target in MOUNTS


class Faulty(Cases):
    """Crashes at the fourth case, and raises at the second."""

    numbers = iter(range(100))

    def run(self, random):
        number = next(self.numbers)
        if number == 1:
            raise KeyError("a surprise")
        if number == 3:
            import ctypes

            ctypes.string_at(0)


def test_crashes_and_surprises_are_found(tmp_path, monkeypatch):
    program = (
        "from tests.faults.hostile import test_fuzz as t; "
        "from tests.fuzz import run, __main__ as m; "
        "run.TARGETS['texts'] = run.TARGETS['texts']._replace(make=t.Faulty); m.main()"
    )
    monkeypatch.setattr("tests.fuzz.run.MAIN", ("-c", program))
    ran, _, failures = run_apart("texts", 1, range(10), tmp_path)
    assert ran == 3
    assert sorted((f.number, f.said.split("\n")[0]) for f in failures)[1] == (3, "ended with -11")
    assert "a surprise" in next(f.said for f in failures if f.number == 1)
