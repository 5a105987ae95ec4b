"""What is measured: each of the contenders reads or writes the same remote arrays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring.processor_time import processor_seconds
from benchmarks.remote.store import BUCKET

KEY, SECRET = "someone", "hunter2"


@dataclass(frozen=True)
class Mount:
    """
    path : the mount point.
    pid : of the daemon.
    """

    path: Path
    pid: int


@contextmanager
def mount(source: str, endpoint: str, point: Path, *options: str) -> Iterator[Mount]:
    """Mounts ``source`` by the real command, which returns when the mount is ready."""
    point.mkdir(parents=True, exist_ok=True)
    zarrfs = [sys.executable, "-m", "zarrfs"]
    words = [*zarrfs, "mount", source, str(point), "-o", f"log_file={point}.log"]
    for option in options:
        words += ["-o", option]
    subprocess.run(words, check=True, timeout=120, env=environment(endpoint))
    try:
        status = [*zarrfs, "status", "--json", str(point)]
        told = subprocess.run(status, check=True, timeout=60, stdout=subprocess.PIPE)
        yield Mount(point, json.loads(told.stdout)["config"]["pid"])
    finally:
        subprocess.run([*zarrfs, "umount", str(point)], check=True, timeout=120)


def environment(endpoint: str) -> dict[str, str]:
    """What the ecosystem's clients look for."""
    return {
        **os.environ,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def read_file(path: Path) -> int:
    """All bytes of a file, in pieces of 1 MiB; how many."""
    count = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 20):
            count += len(data)
    return count


def read_at(path: Path, offsets: np.ndarray, size: int) -> list[float]:
    """Seconds of each read, one after the other."""
    seconds = []
    with path.open("rb", buffering=0) as file:
        for offset in offsets.tolist():
            begun = time.perf_counter()
            os.pread(file.fileno(), size, offset)
            seconds.append(time.perf_counter() - begun)
    return seconds


def tensorstore_spec(kind: str, endpoint: str, name: str) -> dict[str, object]:
    """``kind`` is s3 or http."""
    kvstore: dict[str, object]
    if kind == "s3":
        kvstore = {
            "driver": "s3",
            "bucket": BUCKET,
            "path": f"{name}/",
            "endpoint": endpoint,
            "aws_region": "us-east-1",
            "aws_credentials": {"type": "environment"},
        }
    else:
        kvstore = {"driver": "http", "base_url": f"{endpoint}/{BUCKET}/{name}/"}
    return {"driver": "zarr3", "kvstore": kvstore}


def tensorstore_read(kind: str, endpoint: str, name: str) -> int:
    import tensorstore as ts

    os.environ.update(environment(endpoint))
    found = ts.open(tensorstore_spec(kind, endpoint, name), open=True, read=True).result()
    return int(found.read().result().nbytes)


def tensorstore_write(kind: str, endpoint: str, name: str, data: str) -> int:
    import tensorstore as ts

    os.environ.update(environment(endpoint))
    array = ts.open(tensorstore_spec(kind, endpoint, name), open=True, write=True).result()
    values = np.fromfile(data, array.dtype.numpy_dtype).reshape(array.shape)
    array.write(values).result()
    return values.nbytes


def zarr_python(kind: str, endpoint: str, name: str, data: str | None = None) -> int:
    """Reads, or writes the file ``data``."""
    import zarr

    options = {"key": KEY, "secret": SECRET, "endpoint_url": endpoint} if kind == "s3" else {}
    url = f"s3://{BUCKET}/{name}" if kind == "s3" else f"{endpoint}/{BUCKET}/{name}"
    array = zarr.open_array(url, mode="r" if data is None else "r+", storage_options=options)
    if data is None:
        return int(np.asarray(array[:]).nbytes)
    values = np.fromfile(data, array.dtype).reshape(array.shape)
    array[:] = values
    return values.nbytes


@dataclass(frozen=True)
class Timed:
    """
    seconds : on the clock.
    processor : seconds of user and system time of the process that did the work.
    count : bytes.
    """

    seconds: float
    processor: float
    count: int

    @property
    def rate(self) -> float:
        """Megabytes a second."""
        return self.count / self.seconds / 1e6

    @property
    def cost(self) -> float:
        """Milliseconds of processor time for a megabyte."""
        return self.processor * 1e3 / max(self.count / 1e6, 1e-9)


def timed(work: Callable[[], int], pid: int | None = None) -> Timed:
    """What work takes, in the process ``pid`` or in this one."""
    used, begun = _used(pid), time.perf_counter()
    count = work()
    seconds = time.perf_counter() - begun
    return Timed(seconds, _used(pid) - used, count)


def _used(pid: int | None) -> float:
    return time.process_time() if pid is None else processor_seconds(pid)
