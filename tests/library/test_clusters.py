"""Copies and checks by other processes, and by workers, schedulers and stores that fail."""

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import zarr

import zarrfs
from tests.cli.in_process import in_process
from tests.remote_server.link import random_faults
from tests.remote_server.server import RemoteServer
from zarrfs.errors import UsageError, ZarrfsError
from zarrfs.library import engine as engines
from zarrfs.library.copying import boxes
from zarrfs.library.copying.record import RECORD
from zarrfs.library.engine import EngineConfig, WorkersLost, engine, for_workers, run
from zarrfs.store.open import open_store

pytestmark = [pytest.mark.timeout(240), pytest.mark.filterwarnings("ignore")]

MEMORY = 16 << 20
OPTIONS = zarrfs.SourceOptions(memory=MEMORY)
VALUES = np.random.default_rng(59).integers(1, 99, (64, 128, 128)).astype("u2")
ROWS = {"chunks": [2, 128, 128], "codecs": "zstd:1"}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "a"
    zarr.create_array(path, shape=VALUES.shape, chunks=(16, 32, 32), dtype="u2")[...] = VALUES
    return path


@pytest.fixture(scope="module")
def client():
    """Of a cluster of two processes, which say how much memory their tasks may take."""
    import distributed

    with (
        # Dask leaves settings there, such as MALLOC_TRIM_THRESHOLD_.
        patch.dict(os.environ),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            dashboard_address=None,
            memory_limit=0,
            resources={"memory": MEMORY},
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def same(path) -> bool:
    return np.array_equal(zarr.open_array(path, mode="r")[...], VALUES)


def small_tasks(monkeypatch):
    """One box of a few objects in each task, so that there are several."""
    monkeypatch.setattr(engines, "_TASK_BYTES", 1)
    monkeypatch.setattr(boxes, "_USEFUL", 1)


def kill_when(path: Path, kill) -> threading.Thread:
    """Call ``kill`` as soon as there is an object below ``path``."""

    def wait():
        while not any(path.glob("c/*")):
            time.sleep(0.005)
        kill()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


# --- who does it ----------------------------------------------------------------


def test_a_client_of_dask_copies_and_checks(source, client, tmp_path):
    result = zarrfs.copy(
        source, tmp_path / "b", client=client, options=OPTIONS, verify=True, **ROWS
    )
    assert same(tmp_path / "b")
    assert (result.copied.objects, result.copied.stored) == (32, 32)
    assert not (tmp_path / "b" / RECORD).exists()
    (tmp_path / "b/c/3/0/0").write_bytes(b"nonsense")
    found = zarrfs.check(tmp_path / "b", client=client, options=OPTIONS)
    alone = zarrfs.check(tmp_path / "b", options=OPTIONS)
    assert found.totals == alone.totals
    assert found.findings == alone.findings
    assert [finding.key for finding in found.findings] == ["c/3/0/0"]


def test_the_commands_use_a_running_cluster(source, client, tmp_path):
    address = ["--scheduler", client.scheduler.address, "--memory", "16M"]
    # Not by the client, which cannot write what workers have just measured as JSON.
    scheduler = {"type": "Scheduler", "address": client.scheduler.address, "workers": {}}
    (tmp_path / "scheduler.json").write_text(json.dumps(scheduler))
    file = ["--scheduler-file", tmp_path / "scheduler.json", "--memory", "16M"]
    for command in (
        ["copy", source, tmp_path / "b", "--chunks", "2,128,128", *file],
        ["export", tmp_path / "b", tmp_path / "b.npy", *address],
        ["import", tmp_path / "b.npy", tmp_path / "c", *address],
        ["check", tmp_path / "c", *address],
    ):
        if command[0] == "import":
            zarrfs.create_array(tmp_path / "c", VALUES.shape, "u2", chunks=(16, 32, 32)).close()
        done = in_process(*command)
        assert (done.status, done.stderr) == (0, ""), command
    assert same(tmp_path / "b")
    assert same(tmp_path / "c")
    assert np.array_equal(np.load(tmp_path / "b.npy"), VALUES)
    assert not list(tmp_path.glob("*.zarrfs-part*"))
    refused = in_process("export", tmp_path / "b", "/dev/null", "--format", "bin", *address)
    assert refused.status == 2
    assert "files only" in refused.stderr
    refused = in_process("check", "--repair", tmp_path / "b", *address)
    assert refused.status == 2
    assert "a repair needs one process" in refused.stderr


def test_tasks_tell_dask_how_much_memory_they_take(client):
    with engine(EngineConfig(client=client), MEMORY) as workers:
        assert workers.at_once == 4
        assert workers.executor._kwargs["resources"] == {"memory": MEMORY}
    with (
        pytest.raises(UsageError, match="no worker has"),
        engine(EngineConfig(client=client), 2 * MEMORY),
    ):
        pass


@pytest.mark.parametrize("kind", ["processes", "threads", "dask"])
def test_any_executor_copies(source, client, tmp_path, kind):
    make = {
        "processes": lambda: ProcessPoolExecutor(2, get_context("spawn")),
        "threads": lambda: ThreadPoolExecutor(2),
        "dask": client.get_executor,
    }[kind]
    with make() as executor:
        zarrfs.copy(source, tmp_path / "b", client=executor, options=OPTIONS, **ROWS)
    assert same(tmp_path / "b")


def _faults(_):
    """Pages that the kernel clears for a chunk of 1 MiB, which has 256."""
    size = 1 << 20
    assert len(b"a" * size) == size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        assert len(b"a" * size) == size
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 8


def test_workers_of_dask_keep_the_memory_of_a_chunk_for_the_next_one(client):
    with client.get_executor(pure=False) as executor:
        ((_, faults),) = run(executor, 1, _faults, [0])
    assert faults < 100


def test_nothing_of_dask_is_imported_without_a_scheduler(source, tmp_path):
    program = (
        "import sys, zarrfs\n"
        f"zarrfs.copy({str(source)!r}, {str(tmp_path / 'b')!r})\n"
        "assert not {'dask', 'distributed', 'trio', 'pyfuse3'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_secrets_are_not_sent_to_workers(source):
    given = {"anon": True, "client_kwargs": {"endpoint_url": "http://host"}}
    kept = for_workers(zarrfs.SourceOptions(storage_options=given), "s3://bucket/a")
    assert kept.storage_options == given
    assert kept.memory == kept.memory_bytes
    for secret in ({"secret": "hunter2"}, {"client_kwargs": {"aws_secret_access_key": "hunter2"}}):
        options = zarrfs.SourceOptions(storage_options=secret)
        with pytest.raises(UsageError, match="set it in their environment") as error:
            zarrfs.copy(source, "s3://bucket/b", client=ThreadPoolExecutor(1), options=options)
        assert "hunter2" not in str(error.value)
    with pytest.raises(UsageError, match="is not sent to workers"):
        for_workers(OPTIONS, "https://someone:hunter2@host/a")


def test_errors_come_back_from_workers(source, tmp_path):
    for error in (
        zarrfs.errors.StoreFull("key", "is full"),
        zarrfs.errors.ChunkError("key", "is damaged"),
        zarrfs.errors.MetadataError("zarr.json", "is damaged"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


# --- faults ---------------------------------------------------------------------


def test_killed_workers_change_nothing(source, client, tmp_path, monkeypatch):
    """One is killed while it writes; Dask starts another one, and its tasks run again."""
    small_tasks(monkeypatch)
    pid = min(client.run(os.getpid).values())
    killer = kill_when(tmp_path / "b", lambda: os.kill(pid, signal.SIGKILL))
    result = zarrfs.copy(source, tmp_path / "b", client=client, options=OPTIONS, **ROWS)
    killer.join(60)
    assert result.copied.objects == 32
    assert same(tmp_path / "b")
    assert not (tmp_path / "b" / RECORD).exists()
    client.wait_for_workers(2, timeout=100)


def test_a_pool_that_breaks_leaves_a_record_and_a_second_run_goes_on(source, tmp_path, monkeypatch):
    small_tasks(monkeypatch)
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        pid = executor.submit(os.getpid).result()
        killer = kill_when(tmp_path / "b", lambda: os.kill(pid, signal.SIGKILL))
        with pytest.raises(WorkersLost, match="a worker was lost"):
            zarrfs.copy(source, tmp_path / "b", client=executor, options=OPTIONS, **ROWS)
        killer.join(60)
    assert (tmp_path / "b" / RECORD).exists()
    assert not (tmp_path / "b/zarr.json").exists()
    assert zarrfs.copy(source, tmp_path / "b", options=OPTIONS, **ROWS).resumed
    assert same(tmp_path / "b")


@contextmanager
def scheduler_and_worker(folder: Path, port: int = 0):
    """Two processes, and the address of the scheduler, which ends with ``kill``."""
    file = folder / f"scheduler-{port}.json"
    environment = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", f"distributed.cli.dask_{name}", "--no-dashboard",
                     "--scheduler-file", file, *arguments],
                    env=environment, cwd=folder,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
            stack.callback(process.kill)
            return process

        scheduler = start("scheduler", "--port", str(port))
        while not file.exists():
            assert scheduler.poll() is None
            time.sleep(0.05)
        start("worker", "--no-nanny", "--nthreads", "1", "--death-timeout", "5")
        yield json.loads(file.read_text())["address"], scheduler.kill


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_copy_that_loses_its_scheduler_can_be_completed(
    source, tmp_path, monkeypatch, comes_back
):
    import dask
    import distributed

    small_tasks(monkeypatch)
    with (
        ExitStack() as stack,
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        scheduler_and_worker(tmp_path) as (address, kill),
        distributed.Client(address, timeout=60) as client,
    ):

        def lose():
            kill()
            if comes_back:
                port = int(address.rpartition(":")[2])
                stack.enter_context(scheduler_and_worker(tmp_path, port))

        client.wait_for_workers(1, timeout=60)
        killer = kill_when(tmp_path / "b", lose)
        with pytest.raises(WorkersLost):
            zarrfs.copy(source, tmp_path / "b", client=client, options=OPTIONS, **ROWS)
        killer.join(60)
        assert not (tmp_path / "b/zarr.json").exists()
        if comes_back:
            client.wait_for_workers(1, timeout=60)
        again = client if comes_back else None
        found = zarrfs.copy(source, tmp_path / "b", client=again, options=OPTIONS, **ROWS)
        assert found.resumed
    assert same(tmp_path / "b")


def test_a_store_that_refuses_some_requests(source, tmp_path):
    with RemoteServer() as server:
        server.make_bucket("bucket")
        server.plan = random_faults(5, busy=0.05, drop=0.0)
        options = zarrfs.SourceOptions(memory=MEMORY, storage_options=server.s3_options())
        zarrfs.copy(source, "s3://bucket/b", options=options, verify=True, **ROWS)
        zarrfs.copy("s3://bucket/b", tmp_path / "c", options=options, chunks=[16, 32, 32])
        puts = [key for key in server.objects.buckets["bucket"] if key.startswith("b/")]
    assert same(tmp_path / "c")
    assert sorted(puts) == sorted(["b/zarr.json", *(f"b/c/{n}/0/0" for n in range(32))])


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting tmpfs is for root")
def test_a_full_disk(source, tmp_path):
    (small := tmp_path / "small").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", small]
    subprocess.run(mount, check=True, timeout=30)
    try:
        with pytest.raises(ZarrfsError, match="No space left on device"):
            zarrfs.copy(source, small / "b", options=OPTIONS, **ROWS)
        assert not (small / "b/zarr.json").exists()
        subprocess.run(["mount", "-o", "remount,size=64m", "tmpfs", small], check=True, timeout=30)
        assert zarrfs.copy(source, small / "b", options=OPTIONS, **ROWS).resumed
        assert same(small / "b")
    finally:
        subprocess.run(["umount", "--lazy", small], check=True, timeout=30)


def test_two_copies_at_once_to_the_same_place(source, tmp_path):
    """In two processes, of which one is killed, and does not keep the next one from it."""
    program = (
        "import sys, time, zarrfs\n"
        "from zarrfs.library.copying.boxes import BoxCopy\n"
        "BoxCopy.copy = lambda *_: time.sleep(600)\n"
        f"zarrfs.copy({str(source)!r}, {str(tmp_path / 'b')!r}, chunks=[2, 128, 128], "
        "codecs='zstd:1')\n"
    )
    first = subprocess.Popen([sys.executable, "-c", program])
    try:
        while not (tmp_path / "b" / RECORD).exists():
            assert first.poll() is None
            time.sleep(0.02)
        with pytest.raises(ZarrfsError, match=f"is running .process {first.pid} on"):
            zarrfs.copy(source, tmp_path / "b", **ROWS)
    finally:
        first.kill()
        first.wait(30)
    assert zarrfs.copy(source, tmp_path / "b", **ROWS).resumed
    assert same(tmp_path / "b")


def test_a_copy_that_was_taken_over_stops(source, tmp_path):
    from zarrfs.errors import AlreadyExists
    from zarrfs.library.copying.record import CopyRecord
    from zarrfs.store.open import StoreConfig

    (tmp_path / "b").mkdir()
    store = open_store(str(tmp_path / "b"), StoreConfig())
    record = CopyRecord(store, {}, overwrite=False, removing=False)
    path = Path(tmp_path / "b" / RECORD)
    path.write_bytes(path.read_bytes())
    with pytest.raises(AlreadyExists, match="has taken over"):
        record.write()
    store.close()
