"""The process that forks workers."""

import subprocess
import sys


def test_no_worker_outlives_a_daemon_that_is_killed_while_workers_begin():
    """Whatever a worker has come to: child of the nursery, nobody's child, or the daemon's."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.jobs.killed_daemons", "30"],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout == "done\n"
