"""The store of the remote benchmarks: arrays made on a disk and served from memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MIB = 1 << 20
BUCKET = "bench"
ARRAYS = 200
TINY_CHUNKS, CHUNK_BYTES = 20_000, 4 << 10


@dataclass(frozen=True, slots=True)
class RemoteStore:
    """The running server and what it holds.

    sizes : stored bytes of each array.
    """

    url: str
    sizes: dict[str, int]

    def link(self, latency_s: float, bandwidth: float) -> None:
        """How far away it is from now on."""
        self._ask("link", {"latency_s": latency_s, "bandwidth": bandwidth})

    def busy(self, every: int) -> None:
        """Refuse one of ``every`` requests with 503 from now on; 0: none."""
        self._ask("busy", {"every": every})

    def reset(self) -> None:
        self._ask("reset")

    def counts(self) -> dict[str, Any]:
        return self._ask("counts")

    def _ask(self, name: str, body: object = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/.control/{name}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request) as reply:
            found: dict[str, Any] = json.load(reply)
            return found


CHUNKS = {"plain": (8, 256, 256), "sharded": (32, 32, 32)}
SHARD = (64, 256, 256)


def shape_of(mib: int) -> tuple[int, int, int]:
    """Of an array of 2-byte elements that takes so many MiB."""
    return mib, 1024, 512


def make_arrays(directory: Path, mib: int) -> dict[str, int]:
    """The arrays of the bucket; of each the stored bytes.

    mib : decoded size of the large ones.
    """
    import zarr
    from zarr.codecs import ZstdCodec

    bucket = directory / BUCKET
    shape = shape_of(mib)
    random = np.random.default_rng(1)
    data = np.cumsum(random.integers(-3, 4, shape, np.int16), axis=2, dtype=np.int16)
    zstd = ZstdCodec(level=1)
    plain = zarr.create_array(
        bucket / "plain", shape=shape, chunks=CHUNKS["plain"], dtype="i2", compressors=zstd
    )
    plain[:] = data
    sharded = zarr.create_array(
        bucket / "sharded",
        shape=shape,
        chunks=CHUNKS["sharded"],
        shards=SHARD,
        dtype="i2",
        compressors=zstd,
    )
    sharded[:] = data
    zarr.create_array(
        bucket / "written", shape=(mib // 4, 1024, 512), chunks=(8, 256, 256), dtype="i2",
        compressors=zstd,
    )  # fmt: skip
    (directory / "written.bin").write_bytes(data[: mib // 4].tobytes())
    for name in ("many", "consolidated"):
        group = zarr.create_group(bucket / name)
        for number in range(ARRAYS):
            group.create_array(f"a{number:03}", shape=(4, 4), chunks=(2, 2), dtype="i2")
    with warnings.catch_warnings(action="ignore"):
        zarr.consolidate_metadata(bucket / "consolidated")
    _make_counted(bucket)
    sizes = {path.name: _stored(path) for path in bucket.iterdir() if path.is_dir()}
    archive = shutil.make_archive(str(bucket / "zipped"), "zip", bucket / "zipped")
    return {**sizes, "zipped.zip": Path(archive).stat().st_size}


def _make_counted(bucket: Path) -> None:
    """The arrays whose requests are counted, of bytes that no codec makes fewer."""
    import zarr

    def make(name: str, shape: tuple[int, ...], chunks: tuple[int, ...], *, shard: bool) -> None:
        zarr.create_array(
            bucket / name,
            data=np.random.default_rng(2).integers(0, 256, shape, np.uint8),
            chunks=chunks,
            shards=shape if shard else None,
            compressors=None,
        )

    make("morton", (2048, 8192), (64, 256), shard=True)
    make("eight", (8, MIB), (1, MIB // 8), shard=True)
    make("fine", (4096, 4096), (64, 64), shard=True)
    make("zipped", (128, 200_000), (1, 200_000), shard=False)
    make("tiny", (TINY_CHUNKS, CHUNK_BYTES), (1, CHUNK_BYTES), shard=False)


def _stored(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@contextmanager
def running(directory: Path, mib: int) -> Iterator[RemoteStore]:
    """Makes the arrays below ``directory`` and serves them."""
    served = directory / "served"
    sizes = make_arrays(directory, mib)
    served.mkdir(exist_ok=True)
    (directory / BUCKET).rename(served / BUCKET)
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.remote_server", str(served)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield RemoteStore(server.stdout.readline().strip(), sizes)
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(30)
