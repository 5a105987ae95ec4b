"""Scans that worker processes decode: the same bytes, and no harm where one dies."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zarr
from numcodecs import Zstd
from zarr.codecs import BloscCodec

from tests.waiting import wait_until
from zarrfs.daemon import workers
from zarrfs.daemon.options.options import MountOptions
from zarrfs.daemon.request import MountRequest
from zarrfs.store.local.local_root import LocalRoot
from zarrfs.store.local.scratch import Scratch

SHAPE = (96, 160, 100)
MIB = 1 << 20
# More than a MiB.
LARGE = (96, 100, 60)
SHARDS = (32, 64, 100)


_written: dict[str, Path] = {}


def write(path: Path, repeats: int = 1, **settings) -> np.ndarray:
    """An array below a test's own directory; what is in it."""
    data = np.random.default_rng(0).integers(0, 3000, SHAPE, dtype="u2")
    data = np.concatenate([data + i for i in range(repeats)], dtype="u2")
    form = f"{repeats} {settings}"
    if form not in _written:
        # Beside the directories of the tests: to copy takes a tenth of the time.
        written = path.parents[1] / f"written{len(_written)}"
        zarr.create_array(written, data=data, **{"chunks": (16, 32, 20)} | settings)
        _written[form] = written
    shutil.copytree(_written[form], path)
    return data


def workers_of(pid: int) -> list[int]:
    """The processes that perform jobs for a daemon."""
    return [child for child in children_of(pid) if comm(child) == "zarrfs-worker"]


def children_of(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def loads(mount: Path) -> dict:
    return json.loads((mount / ".zarrfs" / "stats.json").read_bytes())


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        with suppress(FileNotFoundError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(pid)
    return found


def wait_for_end(pids: list[int]) -> None:
    wait_until(lambda: not alive(pids))


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, "rw"),
        ({"shards": (32, 64, 100)}, "byteorder=big"),
        ({"shards": (32, 64, 100)}, "order=F"),
        ({"chunks": (7, 33, 100)}, "order=F"),
        ({"zarr_format": 2, "compressors": Zstd(), "order": "F"}, "ro"),
        ({"chunks": LARGE, "compressors": None}, "ro"),
    ],
    ids=["chunks", "shards", "shards in order F", "overhanging", "v2 F", "large"],
)
def test_scan_is_exact(mount_daemon, tmp_path, settings, options):
    data = write(tmp_path / "a.zarr", **settings)
    daemon = mount_daemon(tmp_path / "a.zarr", options, "workers=2")
    assert len(workers_of(daemon.pid)) == 2
    if options == "order=F":
        data = data.T
    if options == "byteorder=big":
        data = data.astype(">u2")
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    stats = loads(daemon.path)
    # Of what was read, all but what came before the scan was believed in.
    assert stats["cache"]["decoded_bytes"] >= data.nbytes
    assert stats["store"]["read_bytes"] > MIB
    assert stats["errors"]["count"] == 0


def test_closed_standard_streams_do_no_harm(tmp_path):
    """Nothing that the daemon or a worker opens may take their numbers, which are used anew."""
    data = write(tmp_path / "a.zarr", repeats=2)
    path = tmp_path / "mount"
    path.mkdir()
    program = [sys.executable, "-m", "zarrfs"]
    options = ["-o", f"log_file={tmp_path / 'log'}"]
    command = [*program, "mount", *options, str(tmp_path / "a.zarr"), str(path)]
    subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], check=True, timeout=30)
    try:
        flat = np.memmap(path / "array.bin", "<u2", "r", shape=data.shape)
        for plane in np.random.default_rng(1).permutation(len(data))[:40]:
            assert np.array_equal(flat[plane, 50:53], data[plane, 50:53])
        del flat
        assert (path / "array.bin").read_bytes() == data.tobytes()
        pid = json.loads((path / ".zarrfs" / "config.json").read_bytes())["pid"]
        # One more than can run.
        processors = len(os.sched_getaffinity(0))
        assert len(workers_of(pid)) == (min(processors + 1, 8) if processors > 1 else 0)
    finally:
        subprocess.run([*program, "umount", str(path)], check=True, timeout=30)


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"shards": (32, 64, 100)}, "byteorder=big"),
        ({"chunks": (16, 33, 30)}, "order=F"),
    ],
    ids=["shards", "overhanging in order F"],
)
def test_reads_here_and_there_have_slabs_made(mount_daemon, tmp_path, settings, options):
    data = write(tmp_path / "a.zarr", repeats=4, **settings)
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2", options)
    if options == "order=F":
        data = np.ascontiguousarray(data.T)
    if options == "byteorder=big":
        data = data.astype(">u2")
    flat = np.memmap(daemon.path / "array.bin", data.dtype, "r", shape=data.shape)
    # Faults, around each of which the kernel reads much.
    for plane in np.random.default_rng(1).permutation(len(data))[:40]:
        assert np.array_equal(flat[plane, 50:53], data[plane, 50:53])
    del flat
    size = data[0].nbytes * 5 // 4
    whole = data.tobytes()
    with (daemon.path / "array.bin").open("rb", buffering=0) as file:
        for offset in np.random.default_rng(2).permutation(data.nbytes - size)[:100].tolist():
            assert os.pread(file.fileno(), size, offset) == whole[offset : offset + size]
    stats = loads(daemon.path)
    assert stats["errors"]["count"] == 0
    # Few were needed by themselves; some were decoded for what looked like a scan, too.
    assert stats["memory"]["chunks"] < stats["cache"]["loads"] / 4
    assert stats["cache"]["decoded_bytes"] < 3 * data.nbytes


def test_arrays_below_groups_and_small_scalars(mounted, tmp_path):
    root = zarr.create_group(tmp_path / "g.zarr", zarr_format=2)
    data = np.random.default_rng(1).integers(0, 9, (64, 200, 200), dtype="u1")
    root.create_group("a").create_array("b", data=data, chunks=(8, 20, 50))
    root.create_array("scalar", data=np.float64(2.5))
    zarr.consolidate_metadata(tmp_path / "g.zarr")
    path = mounted(tmp_path / "g.zarr", "workers=2")
    assert (path / "a" / "b" / "array.bin").read_bytes() == data.tobytes()
    assert (path / "scalar" / "array.bin").read_bytes() == np.float64(2.5).tobytes()


def test_no_workers_where_none_are_wanted_or_arrays_resize(mount_daemon, tmp_path):
    data = write(tmp_path / "a.zarr")
    for options in ("workers=0", "rw,resize,workers=2"):
        daemon = mount_daemon(tmp_path / "a.zarr", options)
        assert workers_of(daemon.pid) == []
        assert (daemon.path / "array.bin").read_bytes() == data.tobytes()


@pytest.mark.parametrize(("killed", "number"), [(1, signal.SIGKILL), (2, signal.SIGSEGV)])
def test_dead_workers_are_replaced(mount_daemon, tmp_path, killed, number):
    data = write(tmp_path / "a.zarr", repeats=4)
    # Slabs of at most 3 MiB.
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2,memory=16M", quiet=False)
    victims = workers_of(daemon.pid)[:killed]
    with open(daemon.path / "array.bin", "rb", buffering=0) as file:
        read = file.read(MIB)
        for pid in victims:
            os.kill(pid, number)
        while part := file.read(MIB // 4):
            read += part
    assert read == data.tobytes()
    daemon.wait_for_log("1 left")
    # A worker is replaced after it is told that it was lost.
    wait_until(lambda: len(alive(workers_of(daemon.pid))) == 2)
    new = alive(workers_of(daemon.pid))
    assert not set(new) & set(victims)
    daemon.umount()
    assert daemon.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_daemon(mount_daemon, tmp_path, number):
    write(tmp_path / "a.zarr")
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2", quiet=False)
    pids = workers_of(daemon.pid)
    # As a service manager and a terminal do it, all at once; workers leave it to the daemon.
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
    (daemon.path / "array.bin").read_bytes()
    assert alive(pids) == pids
    daemon.signal(number)
    daemon.wait()
    wait_for_end(pids)


def test_workers_keep_nothing_open(mount_daemon, tmp_path):
    write(tmp_path / "a.zarr")
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2")
    for pid in workers_of(daemon.pid):
        held = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        assert "/dev/fuse" not in held
        assert not any(name.startswith("pipe:") for name in held)
        assert os.readlink(f"/proc/{pid}/cwd") == "/"


@pytest.mark.parametrize("settings", [{}, {"shards": (32, 64, 100)}], ids=["chunks", "shards"])
def test_changes_of_others_are_seen(mount_daemon, tmp_path, settings):
    data = write(tmp_path / "a.zarr", **settings)
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2,recheck=always")
    for planes in (slice(0, 32), slice(32, 64)):
        data[planes] += 1
        zarr.open_array(tmp_path / "a.zarr")[planes] = data[planes]
        assert (daemon.path / "array.bin").read_bytes() == data.tobytes()


def test_metadata_that_changed_since_leave_it_to_threads(mount_daemon, tmp_path):
    group = in_group(tmp_path)
    data = write(group / "a.zarr")
    daemon = mount_daemon(group, "workers=2")
    array = daemon.path / "a.zarr" / "array.bin"
    assert array.stat().st_size == data.nbytes  # the daemon has read the metadata
    change_fill_value(group / "a.zarr")
    assert array.read_bytes() == data.tobytes()
    daemon.wait_for_log("is left to threads: ")


def test_workers_have_the_metadata_of_the_source_from_the_daemon(mount_daemon, tmp_path):
    data = write(tmp_path / "a.zarr")
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2")
    before = sum(map(bytes_read, workers_of(daemon.pid)))
    change_fill_value(tmp_path / "a.zarr")
    assert (daemon.path / "array.bin").read_bytes() == data.tobytes()
    assert sum(map(bytes_read, workers_of(daemon.pid))) > before
    assert "is left to threads: " not in daemon.log


def in_group(directory: Path) -> Path:
    """A group for arrays of which workers read the metadata themselves."""
    group = directory / "group"
    group.mkdir()
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    return group


def change_fill_value(array: Path) -> None:
    document = array / "zarr.json"
    document.write_text(json.dumps(json.loads(document.read_bytes()) | {"fill_value": 7}))


def test_a_bad_chunk_is_an_error_of_its_own(mount_daemon, tmp_path):
    data = write(tmp_path / "a.zarr")
    bad = tmp_path / "a.zarr" / "c" / "3" / "2" / "1"
    bad.write_bytes(b"no zstd at all" * 100)
    daemon = mount_daemon(tmp_path / "a.zarr", "workers=2", quiet=False)
    page = 4096
    good = bytearray()
    bad_pages = []
    with open(daemon.path / "array.bin", "rb", buffering=0) as file:
        for offset in range(0, data.nbytes, page):
            try:
                good += os.pread(file.fileno(), page, offset)
            except OSError:
                bad_pages.append(offset // page)
                good += data.tobytes()[offset : offset + page]
    assert bytes(good) == data.tobytes()
    # Chunk (3, 2, 1) has the bytes of columns 20 to 39 of rows 64 to 95 of planes 48 to 63.
    marked = np.zeros(SHAPE, bool)
    marked[48:64, 64:96, 20:40] = True
    touched = np.flatnonzero(marked.reshape(-1, page // 2).any(axis=1))
    assert bad_pages == touched.tolist()
    errors = loads(daemon.path)["errors"]
    assert errors["count"]
    assert "c/3/2/1" in json.dumps(errors)


def test_workers_have_imported_what_decodes_before_the_first_scan(mount_daemon, tmp_path):
    write(tmp_path / "a.zarr", compressors=BloscCodec())
    for worker in workers_of(mount_daemon(tmp_path / "a.zarr").pid):
        assert "blosc" in Path(f"/proc/{worker}/maps").read_text()


def test_no_workers_where_a_codec_starts_threads(tmp_path, monkeypatch):
    write(tmp_path / "a.zarr")
    request = MountRequest(str(tmp_path / "a.zarr"), str(tmp_path), MountOptions(workers=1))
    counts = iter([1, 2])
    monkeypatch.setattr(workers, "_threads", lambda: next(counts))
    assert workers.fork_workers(request) == (None, None)


def transferred(pid: int, which: str) -> int:
    """Bytes that a process has asked of read ("rchar") or given to write calls ("wchar")."""
    counts = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(counts[which])


def bytes_read(pid: int) -> int:
    return transferred(pid, "rchar")


def bytes_written(pid: int) -> int:
    return transferred(pid, "wchar")


def overwrite(path: Path, data: np.ndarray, piece: int = MIB) -> None:
    """Write a whole file in pieces, and wait until it is stored."""
    with open(path, "r+b", buffering=0) as file:
        plain = memoryview(data.tobytes())
        while plain:
            plain = plain[file.write(plain[:piece]) :]
        os.fsync(file.fileno())


def left_behind(path: Path) -> list[str]:
    return [name for name in os.listdir(path) if name.startswith(".zarrfs-tmp-")]


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, "workers=2"),
        ({"chunks": (7, 33, 100)}, "workers=2,order=F"),
        ({"chunks": (1, 160, 100)}, "workers=2"),
        ({"compressors": None}, "workers=2,byteorder=big"),
        ({"zarr_format": 2, "compressors": Zstd(), "order": "F"}, "workers=2,order=F"),
    ],
    ids=["chunks", "overhanging", "in a row", "uncompressed", "v2 F"],
)
def test_small_chunks_are_stored_by_workers(mount_daemon, tmp_path, settings, options):
    data = write(tmp_path / "a.zarr", **settings)
    daemon = mount_daemon(tmp_path / "a.zarr", "rw", options)
    before = [bytes_written(pid) for pid in workers_of(daemon.pid)]
    new = data[::-1] + np.uint16(1)
    written = new.T if "order=F" in options else new
    overwrite(daemon.path / "array.bin", written.astype(">u2" if "big" in options else "<u2"))
    after = [bytes_written(pid) for pid in workers_of(daemon.pid)]
    assert sum(after) - sum(before) > data.nbytes // 4
    stats = loads(daemon.path)
    assert stats["store"]["written_bytes"] > data.nbytes // 4
    assert stats["errors"]["count"] == 0
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], new)
    daemon.umount()
    assert daemon.wait() == 0
    assert left_behind(tmp_path / "a.zarr") == []


@pytest.mark.parametrize("options", ["rw", "rw,store_fill"])
def test_workers_store_no_fill_values_unless_told(mount_daemon, tmp_path, options):
    data = write(tmp_path / "a.zarr")
    daemon = mount_daemon(tmp_path / "a.zarr", options, "workers=2")
    data[:48] = 0
    overwrite(daemon.path / "array.bin", data)
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], data)
    stored = {int(path.parent.parent.name) for path in tmp_path.glob("a.zarr/c/*/*/*")}
    assert stored == set(range(6) if "store_fill" in options else range(3, 6))


@pytest.mark.parametrize("settings", [{}, {"shards": SHARDS}], ids=["chunks", "shards"])
def test_what_dead_workers_were_to_store_is_stored(mount_daemon, tmp_path, settings):
    data = write(tmp_path / "a.zarr", repeats=4, **settings)
    daemon = mount_daemon(tmp_path / "a.zarr", "rw,workers=2,memory=16M", quiet=False)
    victims = workers_of(daemon.pid)
    new = data[::-1].copy()
    plain = memoryview(new.tobytes())
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        while plain:
            if victims and len(plain) < new.nbytes * 2 // 3:
                os.kill(victims.pop(), signal.SIGKILL)
            plain = plain[file.write(plain[: MIB // 2]) :]
        os.fsync(file.fileno())
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], new)
    daemon.umount()
    assert daemon.wait() == 0


def is_held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_what_killed_workers_left_behind_is_removed(mount_daemon, tmp_path):
    source = tmp_path / "a.zarr"
    data = write(source, repeats=4)
    daemon = mount_daemon(source, "rw,workers=2,memory=16M", quiet=False)
    overwrite(daemon.path / "array.bin", data[::-1].copy())
    victims = workers_of(daemon.pid)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_for_end(victims)
    (scratch,) = (source / name for name in left_behind(source))
    dead = [lock for lock in scratch.glob("*.lock") if not is_held(lock)]
    assert dead
    for lock in dead:  # as if each had been killed while it wrote a file
        lock.with_suffix(".999").touch()
    root = LocalRoot(str(source), follow_symlinks=True)
    other = Scratch(root)
    live = other.create("0", scratch.stat().st_dev)
    assert live is not None
    try:
        others = {os.fsdecode(live.name), os.fsdecode(live.name).partition(".")[0] + ".lock"}
        daemon.umount()
        assert daemon.wait() == 0
        assert set(os.listdir(scratch)) == others
    finally:
        live.discard()
        other.close()
    assert left_behind(source) == []


def test_what_a_worker_cannot_store_is_told_and_stays(mount_daemon, tmp_path):
    data = write(tmp_path / "a.zarr")
    blocked = tmp_path / "a.zarr" / "c" / "3" / "2" / "1"
    blocked.unlink()
    blocked.mkdir()
    daemon = mount_daemon(tmp_path / "a.zarr", "rw,workers=2", quiet=False)
    new = data[::-1].copy()
    with pytest.raises(OSError):
        overwrite(daemon.path / "array.bin", new)
    assert "c/3/2/1" in json.dumps(loads(daemon.path)["errors"])
    blocked.rmdir()
    with open(daemon.path / "array.bin", "r+b") as file:
        os.fsync(file.fileno())
    # The one that failed may have been the first of all that were tried.
    with open(daemon.path / "array.bin", "r+b", buffering=0) as file:
        file.write(new.tobytes()[:4])
        os.fsync(file.fileno())
    assert np.array_equal(zarr.open_array(tmp_path / "a.zarr")[...], new)


def test_metadata_that_changed_since_leave_storing_to_threads(mount_daemon, tmp_path):
    data = write(in_group(tmp_path) / "a.zarr")
    daemon = mount_daemon(tmp_path / "group", "rw,workers=2")
    assert (daemon.path / "a.zarr" / "array.bin").stat().st_size == data.nbytes
    document = tmp_path / "group" / "a.zarr" / "zarr.json"
    # Chunks are encoded as before, but the array is longer.
    shape = [2 * SHAPE[0], *SHAPE[1:]]
    changed = json.loads(document.read_bytes()) | {"attributes": {"a": 1}, "shape": shape}
    document.write_text(json.dumps(changed))
    new = data[::-1].copy()
    overwrite(daemon.path / "a.zarr" / "array.bin", new)
    daemon.wait_for_log("is left to threads: ")
    assert np.array_equal(zarr.open_array(tmp_path / "group" / "a.zarr")[: SHAPE[0]], new)
