"""The process that forks workers."""

from tests.conftest import run_python


def test_no_worker_outlives_a_daemon_that_is_killed_while_workers_begin():
    """Whatever a worker has come to: child of the nursery, nobody's child, or the daemon's."""
    done = run_python("-m", "tests.jobs.killed_daemons", "30", timeout=100, check=True)
    assert done.stdout == "done\n"
