"""Killed or failed at any operation, a mount loses nothing that was acknowledged.

A sample in every run of the tests; each operation with `make sweep`.
"""

import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.killed.sweep import KINDS, MODES
from tests.soak import EXHAUSTIVE

pytestmark = [pytest.mark.slow, pytest.mark.soak]

REPOSITORY = Path(__file__).parents[3]
SAMPLE = 1
# These may fail without anybody having to know: tidying up is tried again later, and a look at
# what is stored is not needed by everybody who takes one.
HARMLESS = {"unlink", "rmdir", "info", "get", "get_ranges"}

Ask = Callable[..., dict]


@pytest.fixture(scope="module")
def ask(tmp_path_factory) -> Iterator[Ask]:
    """Does a job of `tests.faults.killed.sweep`."""
    place = tmp_path_factory.mktemp("sweep")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.killed.sweep", place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        @functools.cache
        def ask_server(kind: str, mode: str, at: int) -> dict:
            job = {"kind": kind, "mode": mode, "at": at}
            print(json.dumps(job), file=server.stdin, flush=True)
            return json.loads(server.stdout.readline())

        yield ask_server
        server.stdin.close()


def points(count: int, mode: str) -> range:
    """Which operations to hit: with `make sweep` each, else some, others for each mode."""
    if EXHAUSTIVE:
        return range(1, count + 1)
    step = count // SAMPLE
    return range(1 + MODES.index(mode) * step // len(MODES), count + 1, step)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost(ask, kind, mode):
    whole = ask(kind, "count calls" if mode == "timeout" else "count", 0)
    assert whole["wrong"] == []
    count = whole["operations"]
    assert count > 30
    hits = 0
    for at in points(count, mode):
        answer = ask(kind, mode, at)
        assert answer["wrong"] == [], (kind, mode, at, answer)
        hits += answer["hit"] is not None
        silent = answer["hit"] is not None and not answer["told"]
        assert not (silent and mode not in ("kill", "torn") and answer["hit"] not in HARMLESS), (
            f"nobody was told: {kind}, {mode}, {at}, {answer}"
        )
    # Threads make their calls in any order, so the last ones may not come.
    assert hits > (len(points(count, mode)) * 9 // 10 - 2 if EXHAUSTIVE else 0)
    print(f"{kind}, {mode}: {hits} of {count} operations")
