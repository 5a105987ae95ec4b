"""fio writes and verifies: every block that it reads back holds what it wrote there."""

import subprocess
from pathlib import Path

import pytest
import zarr

from tests.conftest import run_program
from tests.mount.arrays import stored
from tests.soak import TIMES

KINDS = {
    "plain": {"chunks": (61, 5_001)},
    "sharded": {"chunks": (32, 17_000), "shards": (64, 68_000)},
}
SHAPE = (128, 1 << 13)
SIZE = 128 * (1 << 13)

JOBS = {
    "random blocks": "--ioengine=psync --rw=randwrite --bs=4k",
    "random sizes": "--ioengine=psync --rw=randwrite --bsrange=512-70000 --bs_unaligned=1",
    "mixed": "--ioengine=psync --rw=randrw --bs=8k --fsync=64",
    "mapping": "--ioengine=mmap --rw=randwrite --bs=4k --fsync=100",
    "sequential": "--ioengine=psync --rw=write --bs=100k --end_fsync=1",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_fio_verifies(mounted, tmp_path, kind):
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=SHAPE, dtype="u1", **KINDS[kind])[...] = 1
    # Less memory than there are changes, so that chunks are stored and read again.
    path = mounted(source, "rw,memory=16M,flush_delay=0.2") / "array.bin"
    for name, job in JOBS.items():
        _fio(path, tmp_path, f"{job} --verify=crc32c --verify_fatal=1 --size={SIZE} --name=job")
        assert stored(source).tobytes() == path.read_bytes(), name


@pytest.mark.soak
# That of `libaio` waits for each request unless it is direct.
@pytest.mark.parametrize(("engine", "direct"), [("io_uring", 0), ("io_uring", 1), ("libaio", 1)])
def test_requests_in_flight_together(mounted, tmp_path, engine, direct):
    """As databases write: the kernel has many requests of one program at the same time."""
    if engine not in subprocess.check_output(["fio", "--enghelp"], text=True, timeout=20):
        pytest.skip(f"this fio has no {engine}")
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=SHAPE, dtype="u1", **KINDS["sharded"])[...] = 1
    path = mounted(source, "rw,memory=16M,flush_delay=0.2") / "array.bin"
    together = f"--ioengine={engine} --iodepth=32 --direct={direct} --verify=crc32c --size={SIZE}"
    for job in ("--rw=randwrite --bs=4k", "--rw=randrw --bs=16k --fsync=50", "--rw=write --bs=64k"):
        _fio(path, tmp_path, f"{together} {job} --verify_fatal=1 --loops={TIMES} --name=job")
        assert stored(source).tobytes() == path.read_bytes(), job


def test_several_writers(mounted, tmp_path):
    """Each has its own part, whose borders cut chunks and pages."""
    source = tmp_path / "a.zarr"
    zarr.create_array(source, shape=SHAPE, dtype="u1", **KINDS["sharded"])[...] = 1
    path = mounted(source, "rw") / "array.bin"
    job = "--ioengine=psync --rw=randwrite --bs=2k --verify=md5 --fsync=200"
    part = SIZE // 3 // 2048 * 2048
    parts = [f"--name=part{i} --offset={i * part} --size={part}" for i in range(3)]
    _fio(path, tmp_path, " ".join([job, *parts]))
    assert stored(source).tobytes() == path.read_bytes()


def _fio(path: Path, directory: Path, job: str) -> None:
    done = run_program(
        *("fio", f"--filename={path}", "--overwrite=1", "--fallocate=none"),
        *("--allow_file_create=0", "--randrepeat=1", *job.split()),
        timeout=100,
        cwd=directory,
    )
    assert done.returncode == 0, (job, done.stdout[-2000:], done.stderr[-2000:])
