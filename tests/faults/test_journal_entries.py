"""Entries of a journal: of several mounts, torn, damaged, foreign, and judged old or new."""

import errno
import fcntl
import json
import os
import re
import subprocess
import time
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
import zarr

from tests.faults.journals import Journalled, Kept, full
from tests.traced import traced
from zarrfs.cache.write import flusher
from zarrfs.cache.write.journal.directory import JournalDirectory
from zarrfs.cache.write.journal.journal import Journal
from zarrfs.errors import JournalError, StoreFull
from zarrfs.fs import replay as replay_module

SHAPE = (64, 96)
CHUNKS = (32, 32)
ROW = 4 * SHAPE[1]


@pytest.fixture(params=[None, (64, 96)], ids=["chunks", "shards"])
def source(request, tmp_path: Path) -> Path:
    """Chunks so large that a few bytes are kept as scattered changes."""
    path = tmp_path / "source.zarr"
    zarr.create_array(path, data=expected(), chunks=CHUNKS, shards=request.param, fill_value=9)
    return path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "made" / "for" / "journal"


@pytest.fixture
def kept(journal: Path) -> Kept:
    return Kept(journal)


@pytest.fixture
def opened(loop, source, journal):
    """Mounts of the source; those that are not ended are closed."""
    mounts: list[Journalled] = []

    def open_mount(*args, **config) -> Journalled:
        mount = Journalled(loop, source, journal, *args, **config)
        mounts.append(mount)
        return mount

    yield open_mount
    for mount in mounts:
        mount.close()


def expected() -> np.ndarray:
    return np.arange(SHAPE[0] * SHAPE[1], dtype="<i4").reshape(SHAPE)


def stored(source: Path) -> np.ndarray:
    return zarr.open_array(source, mode="r")[...]


def leave(mount: Journalled, *writes: tuple[int, int, bytes]) -> None:
    """Write at (row, column) through a mount whose store is full or silent, and end it."""
    mount.hooked.before = full
    file = mount.edit("array.bin")
    for row, column, data in writes:
        file.write(row * ROW + 4 * column, data)
    errors = mount.end()
    assert mount.hooked.silent or any(isinstance(error, StoreFull) for error in errors)
    assert any("kept in" in str(error) for error in errors)


def why_aside(caplog) -> list[str]:
    """What the log tells of entries that were moved to ``conflicts``."""
    found = (re.search(r"chunk .* of /.*, which (.*?)[;:,]", line) for line in caplog.messages)
    return [match[1] for match in found if match]


def value(number: int) -> bytes:
    return number.to_bytes(4, "little")


def spoil(entry: Path) -> None:
    data = bytearray(entry.read_bytes())
    data[-40] ^= 1
    entry.write_bytes(data)


def first_line(entry: Path) -> dict:
    return json.loads(entry.read_bytes().partition(b"\n")[0])


def replay(opened, source: Path) -> np.ndarray:
    assert opened().end() == []
    return stored(source)


# --- several mounts ---------------------------------------------------------------


def test_entries_of_two_mounts_of_one_chunk_merge(opened, source, kept):
    first, second = opened(), opened()
    leave(first, (0, 0, value(1001)), (0, 2, value(1003)))
    leave(second, (0, 1, value(1002)))
    data = expected()
    data[0, :3] = 1001, 1002, 1003
    assert (replay(opened, source) == data).all()
    assert not kept.journal.exists()


@pytest.mark.parametrize("large", [False, True], ids=["few elements", "whole chunks"])
def test_of_an_element_that_two_mounts_changed_the_later_change_counts(opened, source, kept, large):
    """Whichever mount ended first."""
    first, second = opened(), opened()
    count = CHUNKS[0] if large else 1
    one, other = value(1001) * count, value(1002) * count
    first.edit("array.bin").write(0, one)
    time.sleep(0.01)
    leave(second, *((row, 0, other) for row in range(count)))
    leave(first, (1, 40, value(5)))
    data = expected()
    data[:count, :count] = 1002
    data[1, 40] = 5
    assert (replay(opened, source) == data).all()
    assert not kept.journal.exists()


def test_bytes_of_one_element_of_two_mounts_merge(opened, source, kept):
    """A mount that changed two bytes of four, and one that changed two others, and one of those."""
    first, second = opened(), opened()
    place = 32 * ROW
    first.edit("array.bin").write(place, b"\1\2")
    time.sleep(0.01)
    second.edit("array.bin").write(place + 1, b"\3\4\5")
    leave(second)
    leave(first)
    assert replay(opened, source)[32, 0] == int.from_bytes(b"\1\3\4\5", "little")
    assert not kept.journal.exists()


@pytest.mark.parametrize(("dtype", "fill"), [("<i4", 9), ("S4", b"9")])
@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("new", [b"\1", b"\1\2", b"\1\2\3\4", b"\1\0\0\0", b"\0\0\0\0"])
def test_changes_of_an_array_without_axes(loop, tmp_path, journal, kept, dtype, fill, offset, new):
    path = tmp_path / "scalar.zarr"
    array = zarr.create_array(
        path, shape=(), chunks=(), dtype=dtype, fill_value=fill, zarr_format=2
    )
    data = bytearray(b"\x0d\x0c\x0b\x0a")
    array[...] = np.frombuffer(data, dtype)[0]
    data[offset : offset + len(new)] = new[: 4 - offset]
    mount = Journalled(loop, path, journal)
    mount.hooked.before = full
    mount.edit("array.bin").write(offset, new[: 4 - offset])
    assert mount.end() != []
    assert kept.entries() != []
    mount.close()
    again = Journalled(loop, path, journal)
    assert again.end() == []
    again.close()
    assert np.array(zarr.open_array(path)[...], dtype).tobytes() == bytes(data[:4])
    assert not journal.exists()


def four_rows(tmp_path: Path) -> tuple[Path, zarr.Array]:
    """An array of four rows of 32 bytes, all 1."""
    source = tmp_path / "rows.zarr"
    array = zarr.create_array(source, data=np.ones((4, 8), "<i4"), chunks=(2, 8), fill_value=9)
    return source, array


def grow(mount: Journalled, rows: int, number: int) -> None:
    """Make it so many rows long, the last of ``number``, which only the journal gets."""
    mount.hooked.before = full
    mount.edit("array.bin").write((rows - 1) * 32, value(number) * 8)
    assert mount.end()


def test_longer_arrays_of_two_mounts(loop, tmp_path, journal, kept):
    """The longest counts, with the rows of both."""
    source, _ = four_rows(tmp_path)
    first = Journalled(loop, source, journal, resize=True)
    second = Journalled(loop, source, journal, resize=True)
    grow(first, 6, 2)
    grow(second, 9, 3)
    assert len(kept.entries()) == 4
    mount = Journalled(loop, source, journal)
    assert mount.end() == []
    data = np.full((9, 8), 9, "<i4")
    data[:4], data[5], data[8] = 1, 2, 3
    assert (stored(source) == data).all()
    assert not journal.exists()


def test_growth_that_does_not_fit_any_more_is_set_aside(loop, tmp_path, journal, kept, caplog):
    source, array = four_rows(tmp_path)
    grow(Journalled(loop, source, journal, resize=True), 6, 2)
    array.resize((3, 8))
    assert Journalled(loop, source, journal).end() == []
    assert stored(source).shape == (3, 8)
    assert len(kept.names("conflicts")) == 2
    assert sum("conflicts" in message for message in caplog.messages) == 2


@pytest.mark.parametrize("shape", [(5, 8), (6, 8), (10, 8), (10, 9)], ids=str)
def test_growth_of_an_array_that_others_have_made_longer_meanwhile(
    loop, tmp_path, journal, kept, shape
):
    """It becomes no shorter, and the new rows come in; unless its columns are others."""
    source, array = four_rows(tmp_path)
    grow(Journalled(loop, source, journal, resize=True), 6, 2)
    array.resize(shape)
    assert Journalled(loop, source, journal).end() == []
    data = np.full((max(6, shape[0]), shape[1]), 9, "<i4")
    data[:4, :8] = 1
    if shape[1] == 8:
        data[5] = 2
    assert np.array_equal(stored(source), data)
    assert len(kept.names("conflicts")) == len(kept.names()) == (0 if shape[1] == 8 else 2)


def test_only_one_mount_stores_what_is_in_the_journal(opened, source, kept, caplog, monkeypatch):
    """Another one, which begins meanwhile, waits for a while and leaves it alone then."""
    monkeypatch.setattr(replay_module, "_PATIENCE", 0.1)
    leave(opened(), (0, 0, value(1001)))
    busy = os.open(kept.journal, os.O_RDONLY)
    fcntl.flock(busy, fcntl.LOCK_EX)
    assert (replay(opened, source) == expected()).all()
    assert any("another mount still stores" in message for message in caplog.messages)
    os.close(busy)
    assert replay(opened, source)[0, 0] == 1001


def test_the_journal_of_a_file_system_without_locks_is_stored(opened, source, kept, monkeypatch):
    leave(opened(), (0, 0, value(1001)))

    def flock(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    assert replay(opened, source)[0, 0] == 1001
    assert not kept.journal.exists()


@pytest.mark.parametrize("left", [0, 1, 2, 3], ids=["all", "first", "second", "third"])
def test_a_replay_that_was_cut_short_is_done_again(opened, source, kept, left):
    """Killed when all is stored, and none or some of the entries are removed."""
    mounts = [opened() for _ in range(3)]
    files = [mount.edit("array.bin") for mount in mounts]
    # Later ones change some of the elements, and some of the bytes of elements, again.
    writes = [
        [(0, value(1001) * 4), (40 * ROW, b"\1\2\3")],
        [(4, value(1002) * 2), (40 * ROW + 1, b"\4"), (41 * ROW, b"\5\6")],
        [(4, b"\7"), (40 * ROW + 2, b"\x09"), (41 * ROW, value(1003))],
    ]
    for file, some in zip(files, writes, strict=True):
        for offset, data in some:
            file.write(offset, data)
        time.sleep(0.01)
    contents: dict[str, bytes] = {}
    for mount in mounts:
        leave(mount)
    for entry in kept.entries():
        contents[entry.name] = entry.read_bytes()
    done = replay(opened, source)
    assert done[0, :4].tolist() == [1001, 1002 & ~255 | 7, 1002, 1001]
    assert (
        done[40, 0] == int.from_bytes(b"\1\4\x09\0", "little") | int(expected()[40, 0]) & 255 << 24
    )
    assert done[41, 0] == 1003
    order = sorted(contents, key=lambda name: written(contents[name]))
    # Of one chunk, earlier ones are removed first.
    some = [name for name in order if not left or mount_of(name) in mounts_from(order, left)]
    kept.journal.mkdir(mode=0o700)
    for name in some:
        (kept.journal / name).write_bytes(contents[name])
    assert (replay(opened, source) == done).all()
    assert not kept.journal.exists()


def written(entry: bytes) -> int:
    return json.loads(entry.partition(b"\n")[0])["written_ns"]


def mount_of(name: str) -> str:
    return name.removesuffix(".chunk").rpartition("-")[2]


def mounts_from(order: list[str], first: int) -> list[str]:
    """The mounts from the ``first`` one on, in the order in which they have written."""
    found = list(dict.fromkeys(map(mount_of, order)))
    assert len(found) == 3
    return found[first - 1 :]


@pytest.mark.parametrize("offset", [0, 40 * ROW + 1], ids=["element", "part of one"])
def test_what_others_change_after_a_replay_that_was_cut_short_stays(opened, source, kept, offset):
    mount = opened()
    file = mount.edit("array.bin")
    file.write(0, value(1001))
    file.write(40 * ROW, b"\1\2\3")
    leave(mount)
    contents = {entry.name: entry.read_bytes() for entry in kept.entries()}
    replay(opened, source)
    other = opened()
    other.write("array.bin", offset, b"\x55")
    assert other.end() == []
    done = stored(source)
    kept.journal.mkdir(mode=0o700)
    for name, content in contents.items():
        (kept.journal / name).write_bytes(content)
    assert (replay(opened, source) == done).all()
    assert len(kept.names()) == len(kept.names("conflicts")) == 1


# --- what is not an entry -----------------------------------------------------------


def test_torn_temporaries_are_removed_and_no_entries(opened, source, kept, caplog):
    leave(opened(), (0, 0, value(1001)))
    (entry,) = kept.entries()
    data = entry.read_bytes()
    for count in (0, 10, len(data) - 1):
        torn = entry.with_name(f".{count:032x}-{0:016x}.chunk.new")
        torn.write_bytes(data[:count])
    assert replay(opened, source)[0, 0] == 1001
    assert not kept.journal.exists()
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_what_another_mount_is_writing_is_no_leftover(opened, kept):
    kept.journal.mkdir(mode=0o700, parents=True)
    written = kept.journal / f".{1:032x}-{2:016x}.chunk.new"
    written.write_bytes(b"half")
    writer = os.open(written, os.O_WRONLY)
    fcntl.flock(writer, fcntl.LOCK_EX)
    opened()
    assert kept.names() == [written.name]
    os.close(writer)
    opened()
    assert not kept.journal.exists()


def test_what_another_mount_has_stored_meanwhile_is_passed_over(opened, kept, caplog):
    leave(opened(), (0, 0, value(1001)), (40, 40, value(1002)))
    journal = Journal(str(kept.journal))
    entries = journal.entries()
    first = next(entries)
    for path in kept.entries():
        path.unlink()
    assert list(entries) == []
    with pytest.raises(JournalError):
        first.load()
    journal.remove(first.name)
    assert not [record for record in caplog.records if record.name.endswith("journal")]


def test_an_entry_that_cannot_be_closed_to_others_is_not_written(opened, kept, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    kept.journal.mkdir(mode=0o700, parents=True)
    mount = opened(full)
    mount.edit("array.bin").write(0, value(1001))
    monkeypatch.setattr(os, "fchmod", refuse)
    assert any("Operation not permitted" in str(error) for error in mount.end())
    assert kept.names() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting tmpfs is for root")
def test_a_full_journal_leaves_no_temporary_and_keeps_what_fits(opened, source, journal, kept):
    journal.mkdir(parents=True)
    # The first page of entries is for the directory of a tmpfs of this size.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", journal], check=True)
    try:
        mount = opened()
        mount.hooked.before = full
        file = mount.edit("array.bin")
        for row in range(32):
            file.write(row * ROW, value(1001) * 32)
        for row in range(32, 40):
            file.write(row * ROW, value(1002) * 24)
        filler = journal / "filler"
        filler.write_bytes(bytes(10 << 10))
        errors = mount.end()
        lost = [str(error) for error in errors if "cannot be kept" in str(error)]
        assert len(lost) == 1
        assert "chunk [0, 0] of /" in lost[0]
        assert "No space left on device" in lost[0]
        assert any("1 changed chunk kept in" in str(error) for error in errors)
        assert [path for path in kept.names() if path != "filler"] == [
            path.name for path in kept.entries()
        ]
        data = expected()
        data[32:40, :24] = 1002
        assert (replay(opened, source) == data).all()
    finally:
        subprocess.run(["umount", "-l", journal], check=True)


@pytest.mark.parametrize("state", ["as before", "newer", "silent"])
@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_a_damaged_entry_leaves_others_of_the_same_chunk(opened, source, kept, damaged, state):
    """Others may have stored the chunk since, so that the entries are compared with it.

    Those of a store that was silent have no hash, and are not compared if nothing is newer.
    """
    for number, mount in enumerate([opened() for _ in range(3)]):
        mount.hooked.silent = state == "silent"
        leave(mount, (0, number, value(1001 + number)))
    # In the order of the changes, as they are stored.
    entries = sorted(kept.entries(), key=lambda path: path.stat().st_mtime_ns)
    spoil(entries[damaged])
    result = expected()
    if state == "newer":
        zarr.open_array(source)[1, 1] = 7
        result[1, 1] = 7
    for number in range(3):
        if number != damaged:
            result[0, number] = 1001 + number
    assert (replay(opened, source) == result).all()
    assert len(kept.names("damaged")) == 1


def test_an_older_entry_is_no_newer_for_a_damaged_one_of_the_same_chunk(opened, source, kept):
    first, second = opened(), opened()
    leave(first, (0, 0, value(1001)))
    leave(second, (0, 1, value(1002)))
    spoil(max(kept.entries(), key=lambda path: path.stat().st_mtime_ns))
    zarr.open_array(source)[0, 0] = 77
    result = expected()
    result[0, 0] = 77
    assert (replay(opened, source) == result).all()
    assert len(kept.names("conflicts")) == len(kept.names("damaged")) == 1


@pytest.mark.parametrize("compared", [0, 40])
def test_an_entry_that_need_not_be_compared_leaves_those_of_other_chunks_to_be(
    opened, source, kept, compared
):
    """Of one shard: of one chunk an entry is newer than all, of another one others changed more."""
    first, second = opened(), opened()
    leave(first, (compared, compared, value(1001)))
    zarr.open_array(source)[compared, compared] = 77
    time.sleep(0.01)
    second.hooked.silent = True
    leave(second, (40 - compared, 40 - compared, value(1002)))
    result = expected()
    result[compared, compared] = 77
    result[40 - compared, 40 - compared] = 1002
    assert (replay(opened, source) == result).all()
    assert len(kept.names()) == len(kept.names("conflicts")) == 1


def test_an_entry_that_another_one_has_replaced_since_is_not_loaded(opened, kept):
    """Its header says of which chunk the changes are."""
    leave(opened(), (0, 0, value(1001)), (40, 40, value(1002)))
    first, second = sorted(
        Journal(str(kept.journal)).entries(), key=lambda entry: entry.header.index
    )
    assert (first.header.index, second.header.index) == ((0, 0), (1, 1))
    content = (kept.journal / second.name).read_bytes()
    (kept.journal / first.name).write_bytes(content)
    with pytest.raises(JournalError, match="another entry"):
        first.load()
    (kept.journal / first.name).unlink()
    with pytest.raises(JournalError, match="cannot be read: No such file"):
        first.load()


@pytest.mark.parametrize("source", [None], indirect=True, ids=["chunks"])
@pytest.mark.parametrize(
    "damage",
    ["bit", "header", "cut", "empty", "longer", "huge", "nested", "not json", "a list", "no shape"],
)
def test_a_damaged_entry_is_set_aside_and_named(opened, source, kept, caplog, damage):
    """The mount starts, and what else was kept is stored."""
    leave(opened(), (0, 0, value(1001)), (40, 40, value(1002)))
    bad, _ = kept.entries()
    data = bytearray(bad.read_bytes())
    line, _, rest = bytes(data).partition(b"\n")
    header = json.loads(line)
    good = header["index"] == [0, 0]
    huge = {**header, "shape": [1 << 62, 1 << 62, 1]}
    data[-40] ^= damage == "bit"
    data[1] ^= damage == "header"
    changed = {
        "cut": data[:-1],
        "empty": b"",
        "longer": data + b"\0",
        "huge": json.dumps(huge).encode() + b"\n" + rest,
        "nested": b"[" * 100_000 + b"\n" + rest,
        "not json": b"\xff" * 3_000_000,
        "a list": b"[1, 2]\n" + rest,
        "no shape": json.dumps({**header, "shape": 5}).encode() + b"\n" + rest,
    }
    bad.write_bytes(changed.get(damage, data))
    data = expected()
    data[(40, 40) if good else (0, 0)] = 1002 if good else 1001
    assert (replay(opened, source) == data).all()
    (aside,) = kept.names("damaged")
    assert kept.names() == [f"damaged/{aside}"]
    warnings = [message for message in caplog.messages if bad.name in message]
    assert len(warnings) == 1
    assert f"damaged/{aside}" in warnings[0]
    assert len(warnings[0]) < 1000


@pytest.mark.parametrize("marked", [0, 1 << 32], ids=["no elements", "all elements"])
def test_memory_is_taken_for_chunks_of_the_array_only(opened, source, kept, caplog, marked):
    """An entry may be as large as it says, and right in itself as far as anybody has read it."""
    leave(opened(), (0, 0, value(1001)))
    (entry,) = kept.entries()
    header = first_line(entry)
    header |= {"shape": [1 << 16, 1 << 16, 1], "marked": marked, "written_ns": time.time_ns()}
    line = json.dumps(header).encode() + b"\n"
    huge = entry.with_name(f"{1:032x}-{2:016x}.chunk")
    with huge.open("wb") as file:
        file.write(line)
        file.truncate(len(line) + (1 << 29) + 4 * marked + 32)
    with traced() as peak:
        assert replay(opened, source)[0, 0] == 1001
    assert peak() < 64 << 20
    assert len(kept.names()) == len(kept.names("conflicts")) == 1
    assert sum(huge.name in message for message in caplog.messages) == 1


@pytest.mark.parametrize("kind", ["fifo", "directory", "link"])
def test_what_is_no_regular_file_is_left_alone(opened, source, kept, caplog, kind, tmp_path):
    leave(opened(), (0, 0, value(1001)))
    (entry,) = kept.entries()
    strange = entry.with_name(f"{1:032x}-{2:016x}.chunk")
    target = tmp_path / "elsewhere"
    target.write_bytes(entry.read_bytes())
    {
        "fifo": lambda: os.mkfifo(strange),
        "directory": strange.mkdir,
        "link": lambda: strange.symlink_to(target),
    }[kind]()
    assert replay(opened, source)[0, 0] == 1001
    assert os.path.lexists(strange)
    assert any(strange.name in message for message in caplog.messages)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away is for root")
def test_what_belongs_to_another_user_is_not_stored(opened, source, kept, caplog):
    leave(opened(), (0, 0, value(1001)), (40, 40, value(1002)))
    foreign, own = kept.entries()
    of_own = first_line(own)["index"]
    os.chown(foreign, 65534, 65534)
    data = expected()
    data[(0, 0) if of_own == [0, 0] else (40, 40)] = 1001 if of_own == [0, 0] else 1002
    assert (replay(opened, source) == data).all()
    assert kept.entries() == [foreign]
    assert any(f"{foreign} belongs to the user 65534" in line for line in caplog.messages)

    os.chown(foreign, 0, 0)
    os.chown(kept.journal, 65534, 65534)
    assert (replay(opened, source) == data).all()
    assert any(f"{kept.journal} belongs to the user 65534" in line for line in caplog.messages)
    mount = opened(full)
    mount.edit("array.bin").write(0, value(7))
    assert any("belongs to the user 65534" in str(error) for error in mount.end())


# --- old or new ---------------------------------------------------------------------


def kept_beside_a_store(mount, silent=False):
    """Keep in the journal what changed while the same shard was stored."""
    file = mount.edit("array.bin")

    def meanwhile(key: str) -> None:
        mount.hooked.before = lambda _key: None
        # Of another chunk, of another inner chunk, and of the one that is being stored.
        file.write(0, value(1003))
        file.write(4 * 40, value(1002))
        time.sleep(0.02)

    file.write(4, value(1001))
    mount.hooked.before = meanwhile
    file.fsync()
    mount.hooked.before = full
    mount.hooked.silent = silent
    assert mount.end()


@pytest.mark.parametrize("silent", [False, True], ids=["readable", "silent"])
def test_own_data_are_not_older_than_what_the_same_mount_stored(opened, source, kept, silent):
    """What changes while its shard is stored is older than the shard, and no conflict."""
    kept_beside_a_store(opened(), silent)
    data = expected()
    data[0, :2] = 1003, 1001
    data[0, 40] = 1002
    assert (replay(opened, source) == data).all()
    assert not kept.journal.exists()


def test_what_others_store_after_that_is_not_overwritten(opened, source, kept, caplog):
    kept_beside_a_store(opened())
    zarr.open_array(source)[0, 0] = 77
    assert replay(opened, source)[0, 0] == 77
    assert len(kept.names("conflicts")) == 1
    assert why_aside(caplog) == ["is older than what is stored"]


def test_neighbours_in_the_same_chunk_are_no_conflict(opened, source, kept):
    """Whether others have stored them before the mount ended or after that."""
    mount = opened()
    mount.edit("array.bin").write(0, value(1001))
    time.sleep(0.02)
    zarr.open_array(source)[0, 1] = 77
    leave(mount)
    time.sleep(0.02)
    zarr.open_array(source)[0, 2] = 78
    data = expected()
    data[0, :3] = 1001, 77, 78
    assert (replay(opened, source) == data).all()
    assert not kept.journal.exists()


def test_changes_come_over_what_others_had_stored_when_the_mount_ended(opened, source, kept):
    """As they do where a mount can store what it has."""
    mount = opened()
    mount.edit("array.bin").write(0, value(1001))
    time.sleep(0.02)
    zarr.open_array(source)[0, 0] = 77
    leave(mount)
    assert replay(opened, source)[0, 0] == 1001
    assert not kept.journal.exists()


def test_of_a_store_that_did_not_answer_the_time_of_changes_counts(opened, source, kept):
    """Of when they were made, and not of when they were kept."""
    mount = opened()
    mount.edit("array.bin").write(0, value(1001))
    mount.edit("array.bin").write(40 * ROW, value(1002))
    time.sleep(0.02)
    array = zarr.open_array(source)
    array[0, 0] = 77
    mount.hooked.silent = True
    mount.hooked.before = full
    assert mount.end()
    data = expected()
    data[0, 0] = 77
    if array.shards is None:
        # Its chunk is an object of its own.
        data[40, 0] = 1002
    assert (replay(opened, source) == data).all()
    assert len(kept.names("conflicts")) == (1 if array.shards is None else 2)


@pytest.mark.parametrize("patience", [0.01, 60.0])
def test_a_silent_store_is_not_waited_for_with_each_chunk(opened, kept, monkeypatch, patience):
    monkeypatch.setattr(flusher, "_PATIENCE_S", patience)
    mount = opened()
    file = mount.edit("array.bin")
    for row in (0, 40):
        for column in (0, 40, 80):
            file.write(row * ROW + 4 * column, value(1001))
    mount.hooked.silent = True
    mount.hooked.before = full
    mount.write_back.drain()
    mount.hooked.asked = 0
    journal = Journal(str(kept.journal))
    assert len(mount.write_back.keep(journal).files) == 6
    assert (mount.hooked.asked < 3) == (patience < 1)


def test_a_damaged_chunk_does_not_stand_in_the_way_of_others(loop, tmp_path, journal, kept):
    source = tmp_path / "chunks.zarr"
    array = zarr.create_array(source, data=expected(), chunks=CHUNKS)
    mount = Journalled(loop, source, journal)
    mount.edit("array.bin").write(0, value(1001))
    mount.edit("array.bin").write(40 * ROW, value(1002))
    (source / "c" / "0" / "0").write_bytes(b"damaged")
    mount.hooked.before = full
    assert any("2 changed chunks kept in" in str(error) for error in mount.end())
    time.sleep(0.02)
    array[40, 1] = 77
    Journalled(loop, source, journal, recheck=0).end()
    data = expected()
    data[40, :2] = 1002, 77
    assert (array[32:] == data[32:]).all()
    assert len(kept.names()) == len(kept.entries()) == 1


def test_what_cannot_be_compared_waits(opened, source, kept, caplog):
    """A chunk that is damaged in the store keeps its entry, and the mount starts."""
    leave(opened(), (0, 0, value(1001)))
    stored_object = source / "c" / "0" / "0"
    whole = stored_object.read_bytes()
    stored_object.write_bytes(b"damaged")
    opened(recheck=0).end()
    assert len(kept.entries()) == 1
    assert any("its changes stay in the journal" in message for message in caplog.messages)
    stored_object.write_bytes(whole)
    assert replay(opened, source)[0, 0] == 1001
    assert not kept.journal.exists()


def test_an_attempt_that_succeeds_leaves_no_entries(opened, source, kept):
    mount = opened()
    mount.edit("array.bin").write(0, value(1001))
    mount.hooked.before = full
    assert mount.fs.drain()
    assert len(kept.entries()) == 1
    mount.hooked.before = lambda _key: None
    assert mount.fs.drain() == []
    assert not kept.journal.exists()
    assert stored(source)[0, 0] == 1001


def test_an_array_that_has_grown_since_takes_its_entries(opened, source, kept):
    leave(opened(), (0, 0, value(1001)), (63, 0, value(1002) * 96))
    # By its metadata alone, because what else is stored anew is newer.
    document = source / "zarr.json"
    found = json.loads(document.read_bytes())
    document.write_text(json.dumps({**found, "shape": [100, 96]}))
    data = np.full((100, 96), 9, "<i4")
    data[:64] = expected()
    data[0, 0] = 1001
    data[63] = 1002
    assert (replay(opened, source) == data).all()
    assert not kept.journal.exists()


@pytest.mark.parametrize("source", [None], indirect=True, ids=["chunks"])
@pytest.mark.parametrize(
    "other",
    [
        {"dtype": "<f4", "shape": SHAPE, "chunks": CHUNKS},
        {"dtype": "<i4", "shape": (64, 128), "chunks": CHUNKS},
        {"dtype": "<i4", "shape": (40, 96), "chunks": CHUNKS},
        {"dtype": "<i4", "shape": SHAPE, "chunks": (16, 64)},
        {"dtype": "<i8", "shape": SHAPE, "chunks": CHUNKS},
        {"dtype": "<i4", "shape": (64,), "chunks": (32,)},
        {"dtype": "<f4", "shape": (100, 96), "chunks": CHUNKS},
        {"dtype": "<i4", "shape": (100, 128), "chunks": CHUNKS},
    ],
    ids=["type", "columns", "fewer rows", "chunks", "size", "axes", "long type", "long columns"],
)
@pytest.mark.parametrize("fill", [0, 3], ids=["same value", "other value"])
def test_an_array_that_is_another_one_by_now_is_left_alone(
    opened, source, kept, caplog, other, fill
):
    """Also where nothing is stored of it, so that nothing is newer than the entry.

    fill : the element that the entry replaces was 0, and may be so in the other array, too.
    """
    leave(opened(), (0, 0, value(1001)))
    zarr.create_array(source, fill_value=fill, overwrite=True, **other)
    assert (replay(opened, source) == fill).all()
    assert len(kept.names()) == len(kept.names("conflicts")) == 1
    assert why_aside(caplog) == ["belongs to an array that has been replaced since"]


def test_an_entry_names_the_stored_elements_that_it_replaces(opened, kept):
    """By a hash that other versions can make, too."""
    leave(opened(), (0, 0, value(1001)), (0, 2, value(1002)), (40, 0, b"\1\2"))
    headers = [first_line(entry) for entry in kept.entries()]
    data = expected()
    replaced = {
        (0, 0): data[0, 0].tobytes() + data[0, 2].tobytes(),
        (1, 0): data[40, 0].tobytes()[:2],
    }
    assert {tuple(header["index"]): header["old"] for header in headers} == {
        index: blake2b(plain, digest_size=16).hexdigest() for index, plain in replaced.items()
    }


def test_a_store_that_is_still_full_refuses_the_mount(opened, source):
    leave(opened(), (0, 0, value(1001)))
    with pytest.raises(StoreFull):
        opened(full)
    assert replay(opened, source)[0, 0] == 1001


# --- permissions and durability -------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777], ids=oct)
def test_nobody_else_may_look_into_it(opened, journal, kept, tmp_path, umask):
    mount = opened()
    before = os.umask(umask)
    try:
        leave(mount, (0, 0, value(1001)))
    finally:
        os.umask(before)
    place = journal
    while place != tmp_path:
        assert place.stat().st_mode & 0o7777 == 0o700
        place = place.parent
    (entry,) = kept.entries()
    assert entry.stat().st_mode & 0o7777 == 0o600


def test_kept_means_durable(opened, journal, kept, monkeypatch):
    """The file, then its name, then the directories that lead there."""
    log: list[tuple[str, str]] = []
    fsync, rename, mkdir = os.fsync, os.rename, os.mkdir

    def seen(fd: int) -> str:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if journal not in path.parents:
            return str(path)
        return "TEMPORARY" if path.name.startswith(".") else path.name

    def recorded_fsync(fd):
        log.append(("sync", seen(fd)))
        fsync(fd)

    def recorded_rename(old, new, **keywords):
        rename(old, new, **keywords)
        log.append(("rename", "ENTRY" if str(new).endswith(".chunk") else str(new)))

    def recorded_mkdir(name, mode=0o777, **keywords):
        mkdir(name, mode, **keywords)
        log.append(("mkdir", str(name)))

    mount = opened(full)
    mount.edit("array.bin").write(0, value(1001))
    mount.edit("array.bin").write(40 * ROW, value(1001))
    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "rename", recorded_rename)
    monkeypatch.setattr(os, "mkdir", recorded_mkdir)
    assert mount.end()
    expected_log = []
    for directory in (journal.parent.parent, journal.parent, journal):
        expected_log += [("mkdir", directory.name), ("sync", str(directory.parent))]
    expected_log += [("sync", "TEMPORARY"), ("rename", "ENTRY")] * 2
    expected_log += [("sync", str(journal))]
    assert log == expected_log


@pytest.mark.parametrize("failing", ["file", "directory"])
def test_what_cannot_be_synced_is_not_told_to_be_kept(opened, journal, monkeypatch, failing):
    mount = opened(full)
    mount.edit("array.bin").write(0, value(1001))
    fsync = os.fsync

    def broken(fd):
        if os.path.isdir(f"/proc/self/fd/{fd}") == (failing == "directory"):
            raise OSError(errno.EIO, "Input/output error")
        fsync(fd)

    journal.mkdir(parents=True)
    monkeypatch.setattr(os, "fsync", broken)
    errors = mount.end()
    assert not any("the next mount with -o rw stores them" in str(error) for error in errors)
    (told,) = [error for error in errors if isinstance(error, JournalError)]
    assert "Input/output error" in str(told)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (MemoryError(), "MemoryError()"),
        (JournalError("belongs to another user"), "belongs to another user"),
    ],
    ids=["full", "no memory", "not ours"],
)
def test_why_a_change_cannot_be_kept_is_told_in_a_few_words(
    opened, kept, monkeypatch, error, reason
):
    def refuse(self, name, pieces):
        raise error

    mount = opened(full)
    mount.edit("array.bin").write(0, value(1001))
    monkeypatch.setattr(JournalDirectory, "put", refuse)
    (told,) = [error for error in mount.end() if isinstance(error, JournalError)]
    assert str(told).endswith(f"cannot be kept in {kept.journal}: {reason}")


def test_nothing_of_the_journal_stays_open(opened, source, kept):
    """Neither of what is kept nor of what is stored, damaged or in conflict."""

    def of_journal() -> list[str]:
        found = []
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # that of this directory
                found.append(os.readlink(f"/proc/self/fd/{number}"))
        return [path for path in found if str(kept.journal) in path]

    mount = opened()
    leave(mount, (0, 0, value(1001)), (0, 40, value(1002)), (40, 40, value(1003)))
    assert of_journal() == []
    damaged = kept.entries()[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    array = zarr.open_array(source)
    array[0, 40] = array[40, 40] = array[0, 0] = 5
    opened()
    assert len(kept.names("conflicts")) == 2
    assert of_journal() == []


def test_entries_take_no_more_room_than_what_has_changed(opened, kept):
    """Of a chunk of 4 KiB, a bit for each element beside the new ones."""
    leave(opened(), (0, 0, value(1001)))
    (entry,) = kept.entries()
    assert entry.stat().st_size < 700
