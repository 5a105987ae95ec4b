"""Bombs in a process that could not hold what they decode to, native memory included."""

import gzip
from functools import reduce

import numcodecs
import numpy as np
import pytest

from tests.conftest import run_python
from tests.fs.documents import CRC32C, GZIP, LITTLE, ZSTD, array_document, sharding
from tests.fs.shards import shard, with_checksum

pytestmark = pytest.mark.timeout(120)

SIDE = 1 << 10
ROOM = 64 << 20
MEBIBYTES = 100 << 20

BLOSC = {
    "name": "blosc",
    "configuration": {
        "cname": "zstd", "clevel": 5, "shuffle": "noshuffle", "typesize": 2, "blocksize": 0
    },
}  # fmt: skip


def blosc(data):
    return numcodecs.Blosc("zstd", shuffle=0).encode(np.frombuffer(data, "u1"))


def zstd(data):
    return numcodecs.Zstd(1).encode(data)


def without_content_size(frame):
    """The same frame without telling how much it holds."""
    assert frame[4] == 0x80  # a window, and a size of four bytes
    return frame[:4] + b"\0" + frame[5:6] + frame[10:]


def sharded(data):
    return shard([data])


BOMBS = {
    "gzip": ([LITTLE, GZIP], gzip.compress, lambda: gzip.compress(bytes(MEBIBYTES), 1)),
    "gzip-members": ([LITTLE, GZIP], gzip.compress, lambda: gzip.compress(bytes(10 << 20)) * 5),
    "gzip-chain": (
        [LITTLE, *[GZIP] * 12],
        lambda data: reduce(lambda made, _: gzip.compress(made), range(12), data),
        lambda: gzip.compress(bytes(MEBIBYTES), 1),
    ),
    "zstd": ([LITTLE, ZSTD], zstd, lambda: zstd(bytes(MEBIBYTES))),
    "zstd-frames": ([LITTLE, ZSTD], zstd, lambda: zstd(bytes(10 << 20)) * 10),
    "zstd-silent": ([LITTLE, ZSTD], zstd, lambda: without_content_size(zstd(bytes(MEBIBYTES)))),
    "zstd-silent-variable": (
        [LITTLE, GZIP, ZSTD],
        lambda data: zstd(gzip.compress(data)),
        lambda: without_content_size(zstd(bytes(MEBIBYTES))),
    ),
    "blosc": ([LITTLE, BLOSC], blosc, lambda: blosc(bytes(MEBIBYTES))),
    "inner-chunk": (
        [sharding((SIDE,), codecs=[LITTLE, ZSTD])],
        lambda data: sharded(zstd(data)),
        lambda: sharded(zstd(bytes(MEBIBYTES))),
    ),
    "around-shard": (
        [sharding((SIDE,)), CRC32C, GZIP],
        lambda data: gzip.compress(with_checksum(sharded(data))),
        lambda: gzip.compress(with_checksum(bytes(MEBIBYTES)), 1),
    ),
}


@pytest.fixture(scope="module")
def reasons(tmp_path_factory):
    """Why each bomb could not be read."""
    root = tmp_path_factory.mktemp("bombs")
    for name, (codecs, encode, bomb) in BOMBS.items():
        (root / name / "c").mkdir(parents=True)
        document = array_document((3 * SIDE,), (SIDE,), codecs=codecs)
        (root / name / "zarr.json").write_bytes(document)
        for i in (0, 2):
            (root / name / f"c/{i}").write_bytes(encode(bytes(2 * SIDE)))
        (root / name / "c/1").write_bytes(bomb())
    done = run_python(
        "-m", "tests.faults.hostile.read_within", str(ROOM), *(root / n for n in BOMBS), timeout=100
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(BOMBS, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("name", BOMBS)
def test_never_taken_into_memory(reasons, name):
    assert reasons[name]
    # It is refused, and not found out when memory is gone.
    assert "emory" not in reasons[name]
