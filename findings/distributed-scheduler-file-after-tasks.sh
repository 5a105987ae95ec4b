#!/usr/bin/env bash
# Dask writes half a scheduler file if a worker ran a task since its last but one heartbeat.
#
# Versions: distributed 2026.8.0, dask 2026.8.0.
# Behaviour: `Client.write_scheduler_file` writes what the scheduler knows of its workers as JSON.
# Each heartbeat brings the seconds and bytes that the worker counted since the heartbeat before,
# under keys such as ("execute", "int", "executor", "seconds"). JSON has no tuples as keys, so the
# call raises a TypeError in the middle of the file, which stays as it is; the next call raises
# "Scheduler file already set". An idle heartbeat later the file is whole. The script asks for the
# heartbeats itself, so that no timer decides.
# Expected before the run: the file is written at any time, as it says who the scheduler is.
# Output seen:
#   no task yet: written
#   heartbeat after a task: TypeError: keys must be str, int, float, bool or None, not tuple
#     first such key: ('execute', 'int', 'thread-cpu', 'seconds')
#     the file is not JSON
#     again: ValueError: Scheduler file already set
#   idle heartbeat after it: written
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install distributed==2026.8.0 dask==2026.8.0
cd "$folder"
venv/bin/python -I -W ignore - <<'PYTHON'
import json

from distributed import Client, LocalCluster

PATH = "scheduler.json"


async def beat(dask_worker):
    dask_worker.periodic_callbacks["heartbeat"].stop()
    await dask_worker.heartbeat()


def counted(dask_scheduler):
    (worker,) = dask_scheduler.workers.values()
    return list(worker.metrics["digests_total_since_heartbeat"])


def write():
    client.scheduler_file = None
    client.write_scheduler_file(PATH)
    with open(PATH) as file:
        assert json.load(file)["address"]


options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
with LocalCluster(dashboard_address=None, **options) as cluster, Client(cluster) as client:
    client.run(beat)
    client.run(beat)
    write()
    print("no task yet: written")

    client.submit(int, 1).result()
    client.run(beat)
    try:
        write()
    except TypeError as error:
        assert "not tuple" in str(error)
        print("heartbeat after a task: TypeError:", error)
    else:
        raise SystemExit("the file is written")
    key = next(key for key in client.run_on_scheduler(counted) if isinstance(key, tuple))
    print("  first such key:", key)
    assert key[:2] == ("execute", "int")
    try:
        json.load(open(PATH))
    except ValueError:
        print("  the file is not JSON")
    else:
        raise SystemExit("the file is whole")
    try:
        client.write_scheduler_file(PATH)
    except ValueError as error:
        print("  again: ValueError:", error)
    else:
        raise SystemExit("the second call works")

    client.run(beat)
    write()
    print("idle heartbeat after it: written")
PYTHON
