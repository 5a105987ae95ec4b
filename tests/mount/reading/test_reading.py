"""Exact: what other processes read from a mount, by system calls and through mappings."""

import hashlib
import json
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import psutil
import pytest
import tensorstore as ts
import zarr

from tests.conftest import Mounter

pytestmark = pytest.mark.mount

SHAPE = (70, 90, 110)

# Maps the file, and compares the mapping with what pread gives, byte ranges of odd length
# at odd offsets; prints a sum that depends on every byte of the mapping.
MAPPER = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct stat status;
    int file = open(argv[1], O_RDONLY);
    if (argc != 2 || file < 0 || fstat(file, &status)) return 1;
    uint8_t *map = mmap(0, status.st_size, PROT_READ, MAP_SHARED, file, 0);
    uint8_t *part = malloc(70001);
    if (map == MAP_FAILED || !part) return 2;
    for (off_t at = 1; at < status.st_size; at += 68813) {
        ssize_t got = pread(file, part, 70001, at);
        if (got <= 0 || memcmp(part, map + at, got)) return 3;
    }
    uint64_t sum = 14695981039346656037u;
    for (off_t at = 0; at < status.st_size; at++) sum = (sum ^ map[at]) * 1099511628211u;
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
"""


@pytest.fixture(scope="module", params=["plain", "sharded"])
def source(request, tmp_path_factory) -> tuple[Path, bytes]:
    """An array, and its bytes as zarr-python and TensorStore agree on them."""
    path = tmp_path_factory.mktemp(request.param) / "source.zarr"
    shards = (32, 48, 64) if request.param == "sharded" else None
    values = np.random.default_rng(3).integers(0, 1 << 16, SHAPE, np.uint16)
    array = zarr.create_array(path, data=values, chunks=(16, 24, 32), shards=shards)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
    theirs = ts.open(spec, read=True).result().read().result()
    data = array[...].tobytes()
    assert theirs.tobytes() == data
    return path, data


@pytest.fixture(scope="module")
def mount(source, shared_mounter: Mounter) -> Path:
    return shared_mounter(source[0]).path


def _run(*command: object) -> bytes:
    return subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=60).stdout


def test_exact(mount, source, tmp_path):
    """By the tools that people use, with any block size, aligned to nothing."""
    _, data = source
    file = mount / "array.bin"
    assert file.stat().st_size == len(data)
    assert _run("sha256sum", file).split()[0].decode() == hashlib.sha256(data).hexdigest()
    for block, skip, count in [(1, 12345, 777), (4097, 3, 50), (99991, 1, 9), (1 << 20, 0, 99)]:
        got = _run(
            "dd", f"if={file}", f"bs={block}", f"skip={skip}", f"count={count}", "status=none"
        )
        assert got == data[block * skip : block * (skip + count)], (block, skip)
    copy = tmp_path / "copy"
    copy.write_bytes(data)
    _run("cmp", copy, file)
    descriptor = os.open(file, os.O_RDONLY)
    try:
        assert os.pread(descriptor, 100, len(data) - 7) == data[-7:]
        assert os.pread(descriptor, 100, len(data)) == b""
        assert os.pread(descriptor, 100, len(data) + 12345) == b""
    finally:
        os.close(descriptor)


def test_chunks_that_the_kernel_does_not_keep_stay_in_memory(mount_daemon, tmp_path):
    """It keeps nothing of what a program reads past its pages."""
    data = np.random.default_rng(0).integers(0, 99, (4, 65536), np.uint8)
    zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(1, 65536), dtype="u1")[...] = data
    mount = mount_daemon(tmp_path / "a", "views=chunked.h5").path
    with h5py.File(mount / "array.chunked.h5") as file:
        (found,) = (dataset for dataset in file.values() if dataset.chunks)
        places = [found.id.get_chunk_info(i).byte_offset for i in range(4)]
    descriptor = os.open(mount / "array.chunked.h5", os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, data.shape[1]) as buffer:
        for row, place in 2 * list(zip(data, places, strict=True)):
            assert os.preadv(descriptor, [buffer], place) == len(row)
            assert buffer[:] == row.tobytes()
    os.close(descriptor)
    assert json.loads((mount / ".zarrfs/stats.json").read_bytes())["cache"]["loads"] == 4


def test_chunks_that_hdf5_reads_in_parts(mount_daemon, tmp_path):
    """The kernel reads ahead of it, where a chunk would be decoded for nobody."""
    data = np.random.default_rng(0).integers(0, 99, (128, 128, 384), np.uint8)
    zarr.create_array(tmp_path / "a", data=data, chunks=(128,) * 3)
    mount = mount_daemon(tmp_path / "a", "views=chunked.h5").path
    with h5py.File(mount / "array.chunked.h5") as file:
        (found,) = (dataset for dataset in file.values() if dataset.chunks)
        np.testing.assert_array_equal(found[:, :, 130], data[:, :, 130])
    assert json.loads((mount / ".zarrfs/stats.json").read_bytes())["cache"]["loads"] == 1
    # All threads of the daemon share the memory that they free: none has an arena of its own.
    pid = json.loads((mount / ".zarrfs/config.json").read_bytes())["pid"]
    maps = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    spans = [[int(end, 16) for end in words[0].split("-")] for words in maps]
    for (start, _), (_, stop), words in zip(spans, spans[1:], maps[1:], strict=False):
        assert words[1] != "---p" or start % (64 << 20) or stop - start != 64 << 20


def test_mapped(mount, source, tmp_path):
    """From Python and from C."""
    _, data = source
    code = (
        "import sys, hashlib, numpy as np;"
        "print(hashlib.sha256(np.memmap(sys.argv[1], np.uint8, 'r')).hexdigest());"
        "print(hashlib.sha256(np.load(sys.argv[2], mmap_mode='r')).hexdigest())"
    )
    hashes = _run(sys.executable, "-c", code, mount / "array.bin", mount / "array.npy")
    assert hashes.decode().split() == [hashlib.sha256(data).hexdigest()] * 2
    program = tmp_path / "mapper"
    (tmp_path / "mapper.c").write_text(MAPPER)
    _run("cc", "-O2", "-o", program, tmp_path / "mapper.c")
    copy = tmp_path / "copy"
    copy.write_bytes(data)
    assert _run(program, mount / "array.bin") == _run(program, copy)


@pytest.mark.parametrize("compressors", [None, zarr.codecs.BloscCodec(blocksize=1 << 16)])
def test_small_reads_of_large_chunks_read_little(mounted, tmp_path, compressors):
    """With less memory than the array has."""
    values = (np.arange(24 << 20) // 99).astype("<u2").reshape(24, 1024, 1024)
    path = tmp_path / "large.zarr"
    zarr.create_array(path, data=values, chunks=(2, 1024, 1024), compressors=compressors)
    data = values.tobytes()
    mount = mounted(path, "memory=32M")
    descriptor = os.open(mount / "array.bin", os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    random = np.random.default_rng(0)
    try:
        for offset in random.integers(0, len(data) - 4096, 100):
            assert os.pread(descriptor, 4096, offset) == data[offset : offset + 4096]
    finally:
        os.close(descriptor)
    stats = json.loads((mount / ".zarrfs/stats.json").read_bytes())
    assert stats["cache"]["parts"] >= 100
    assert stats["cache"]["loads"] == 0
    assert stats["store"]["read_bytes"] < len(data) // 4


def test_chunk_files(mount, source):
    path, data = source
    whole = np.frombuffer(data, "<u2").reshape(SHAPE)
    padded = np.zeros((80, 96, 128), "<u2")
    padded[tuple(map(slice, SHAPE))] = whole
    for index in np.ndindex(5, 4, 4):
        i, j, k = (n * length for n, length in zip(index, (16, 24, 32), strict=True))
        expected = padded[i : i + 16, j : j + 24, k : k + 32].tobytes()
        assert (mount / "chunks" / "/".join(map(str, index))).read_bytes() == expected
    names = sorted(_run("find", mount, "-mindepth", 1, "-maxdepth", 1, "-printf", "%f ").split())
    shards = [b"shards"] if (mount / "shards").exists() else []
    formats = [b"array.npy", b"array.nhdr", b"array.bin.hdr", b"array.h5"]
    assert names == sorted([b".zarrfs", b"array.bin", *formats, b"chunks", b"zarr.json", *shards])
    assert (mount / "zarr.json").read_bytes() == (path / "zarr.json").read_bytes()


def test_bad_chunks(mount_daemon, source, tmp_path):
    """EIO for what is asked, with key and reason in stats.json; the rest and the daemon live."""
    path, data = shutil.copytree(source[0], tmp_path / "bad.zarr"), source[1]
    key = "c/1/1/1"
    stored = bytearray((path / key).read_bytes())
    stored[20:40] = bytes(20)
    (path / key).write_bytes(stored[: len(stored) - 9])
    daemon = mount_daemon(path, "memory=16M", quiet=False)
    mount = daemon.path
    with pytest.raises(OSError, match="Input/output error"):
        (mount / "array.bin").read_bytes()
    assert (mount / "chunks/0/0/0").stat().st_size == 16 * 24 * 32 * 2
    assert (mount / "chunks/0/0/0").read_bytes()[:64] == data[:64]
    with (mount / "array.bin").open("rb") as file:
        assert file.read(5000) == data[:5000]
    errors = json.loads((mount / ".zarrfs/stats.json").read_text())["errors"]
    assert errors["count"] > 0
    assert errors["last"][-1]["key"].endswith(key)
    assert errors["last"][-1]["reason"]


def test_bounded(mount_daemon, tmp_path):
    """A billion chunks; and memory stays within the budget whatever is read."""
    path = tmp_path / "huge.zarr"
    zarr.create_array(path, shape=(1000, 1000, 100_000), chunks=(1, 1, 100), dtype="<u2")
    daemon = mount_daemon(path, "memory=32M")
    mount = daemon.path
    assert (mount / "array.bin").stat().st_size == 2 * 10**11
    assert len(os.listdir(mount / "chunks/0/0")) == 1000
    assert (mount / "chunks/999/999/999").read_bytes() == bytes(200)
    before = psutil.Process(daemon.pid).memory_info().rss
    with (mount / "array.bin").open("rb") as file:
        for offset in range(0, 2 * 10**11, 10**10):
            file.seek(offset)
            assert file.read(300_000) == bytes(300_000)
    assert psutil.Process(daemon.pid).memory_info().rss - before < 150 << 20


def test_extended_attributes_and_space(mount):
    told = _run("getfattr", "-d", "--absolute-names", mount / "array.bin").decode()
    assert 'user.zarr.shape="[70, 90, 110]"' in told
    told = _run("getfattr", "-d", "--absolute-names", mount / "chunks/4/3/3").decode()
    assert 'user.zarrfs.valid_shape="[6, 18, 14]"' in told
    assert b"fuse.zarrfs" in _run("df", "-T", mount)
    assert os.statvfs(mount).f_blocks > 0
