"""Of updates that several mounts make in the same objects, none is lost."""

import pytest

from tests.faults.killed.updates_together import run
from tests.soak import TIMES

pytestmark = [pytest.mark.mount, pytest.mark.soak]


@pytest.mark.parametrize("sharded", [False, True], ids=["chunks", "shards"])
@pytest.mark.timeout(120 * TIMES)
def test_none_is_lost(tmp_path, sharded):
    mounts = 3 if TIMES == 1 else 8
    outcome = run(tmp_path, mounts=mounts, updates=60 * TIMES, sharded=sharded, seed=TIMES)
    assert outcome.lost == 0
    assert outcome.conflicts
    assert outcome.refused
