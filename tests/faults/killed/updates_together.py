"""Several mounts that update elements of the same few objects, on a store that fails now and then.

``python -m tests.faults.killed.updates_together --mounts 8 --updates 10000`` prints what became of
them.
"""

import argparse
import os
import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import zarr

from tests.conftest import run_zarrfs
from tests.remote_server import RemoteServer, random_faults

# All updates meet in so many objects.
OBJECTS = 4
INNER = 16


@dataclass(frozen=True)
class Outcome:
    """
    lost : updates that fsync acknowledged and that the store does not hold.
    refused : of all requests, those that the store failed on purpose.
    conflicts : writes whose condition did not hold, because another mount was faster.
    """

    updates: int
    lost: int
    requests: int
    refused: int
    conflicts: int


def run(directory: Path, *, mounts: int, updates: int, sharded: bool, seed: int) -> Outcome:
    """Each update writes an element of its own; raises where an fsync fails."""
    count = -(-updates // (OBJECTS * INNER)) * INNER
    root = directory / "a.zarr"
    layout = {"chunks": (INNER,), "shards": (count,)} if sharded else {"chunks": (count,)}
    zarr.create_array(root, shape=(count * OBJECTS,), dtype="u2", **layout)
    wanted = np.random.default_rng(seed).integers(1, 1 << 16, updates, "u2")
    places = np.random.default_rng(seed + 1).permutation(count * OBJECTS)[:updates]
    with RemoteServer() as server, ExitStack() as stack:
        server.upload(root, "b")
        environment = {
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
            "AWS_ENDPOINT_URL": server.url,
        }
        stack.enter_context(mock.patch.dict(os.environ, environment))
        points = [
            stack.enter_context(_mounted(directory / f"mount{number}")) for number in range(mounts)
        ]
        refused = _Faults(seed)
        server.plan = refused.plan
        shares = [
            (places[number::mounts], wanted[number::mounts], random.Random(seed + number))
            for number in range(mounts)
        ]
        _all(list(zip(points, shares, strict=True)))
        server.plan = lambda _method, _target: None
        stack.close()  # all mounts end
        found = _read(server, directory)
        lost = int(np.count_nonzero(found[places] != wanted))
        requests, conflicts = server.counts.total, server.objects.conflicts
        return Outcome(updates, lost, requests, refused.count, conflicts)


class _Faults:
    """5 % of 503s and 2 % of broken connections."""

    def __init__(self, seed: int) -> None:
        self.count = 0
        self._plan = random_faults(seed, busy=0.05, drop=0.02)

    def plan(self, method: str, target: str):
        fault = self._plan(method, target)
        self.count += fault is not None
        return fault


def _all(work: list) -> None:
    failed: list[BaseException] = []

    def update(point: Path, share) -> None:
        try:
            _update(point, *share)
        except BaseException as error:  # noqa: BLE001 - it is raised below
            failed.append(error)

    threads = [threading.Thread(target=update, args=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def _update(point: Path, places: np.ndarray, values: np.ndarray, chance: random.Random) -> None:
    file = os.open(point / "array.bin", os.O_RDWR)
    try:
        for place, value in zip(places.tolist(), values, strict=True):
            os.pwrite(file, value.tobytes(), 2 * place)
            if chance.random() < 0.3:
                os.fsync(file)
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _mounted(point: Path) -> Iterator[Path]:
    point.mkdir()
    options = f"rw,memory=64M,log_file={point}.log"
    mounted = run_zarrfs("mount", "s3://b/a.zarr", point, "-o", options, timeout=120)
    assert mounted.returncode == 0, mounted
    try:
        yield point
    finally:
        assert run_zarrfs("umount", point, timeout=120).returncode == 0


def _read(server: RemoteServer, directory: Path) -> np.ndarray:
    """What another implementation reads of what is stored."""
    root = directory / "after.zarr"
    for key, stored in server.objects.buckets["b"].items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(stored.data)
    return zarr.open_array(root / "a.zarr", mode="r")[:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mounts", type=int, default=8)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for sharded in (False, True):
        with tempfile.TemporaryDirectory(prefix="zarrfs-updates-") as name:
            outcome = run(
                Path(name),
                mounts=given.mounts,
                updates=given.updates,
                sharded=sharded,
                seed=given.seed,
            )
        print("shards" if sharded else "chunks", outcome, flush=True)


if __name__ == "__main__":
    main()
