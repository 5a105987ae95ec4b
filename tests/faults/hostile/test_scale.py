"""A small version of ``make scale``; see `tests.scale`."""

from pathlib import Path

import pytest

from tests.conftest import Mounter
from tests.scale.hierarchy import make
from tests.scale.observed import Usage
from tests.scale.run import Scale, grown, run
from tests.soak import TIMES

pytestmark = [pytest.mark.soak, pytest.mark.timeout(200)]

SCALE = Scale(arrays=24, chunks=20, handles=600, processes=3, operations=10 * TIMES)


def test_nothing_of_the_work_of_several_processes_stays(tmp_path: Path, mount_daemon: Mounter):
    make(tmp_path / "source", SCALE.arrays, SCALE.chunks)
    daemon = mount_daemon(tmp_path / "source", "rw,xattr,memory=64M")
    usages = run(SCALE, daemon.path, daemon.pid)
    assert grown(usages) == []


BEFORE = Usage(memory=100 << 20, workers=0, descriptors=40, threads=20)


@pytest.mark.parametrize(("changed", "told"), [
    ({"memory": 160 << 20}, ["memory"]), ({"descriptors": 60}, ["descriptors"]),
    ({"threads": 40}, ["threads"]), ({"workers": 60 << 20, "threads": 40}, ["memory", "threads"]),
    ({}, []), ({"memory": 110 << 20, "descriptors": 42}, []),
])  # fmt: skip
def test_what_grows_is_told(changed: dict[str, int], told: list[str]):
    problems = grown({"tenth 3": BEFORE, "end": BEFORE._replace(**changed)})
    assert [problem.partition(":")[0] for problem in problems] == told
